// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allreduce, MPI_Reduce_scatter_block and MPI_Reduce_scatter, with their nonblocking,
// persistent and large-count forms. Their arguments differ only in the counts: one count, or an
// array with a count for each rank.
//
// Programs such as mpi4py call a function for large counts if they find one. The process's MPI may
// lack it (an MPI older than 4.0, or another than MPICH). Then the function here calls the function
// for small counts.
#include <atomic>
#include <climits>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "algorithm/hook.h"
#include "device/device.h"
#include "intercept/names.h"

namespace slimpi::intercept {

namespace {

// The counts of a function. set() writes them into a call; small() and large() read them back.
struct OneCount {
  static void set(Request& request, std::int64_t count) { request.count = count; }
  static int small(const Request& request) { return int(request.count); }
  static std::int64_t large(const Request& request) { return request.count; }
};

struct BlockCount {
  static void set(Request& request, std::int64_t count) {
    request.collective = Collective::reduce_scatter;
    request.blocks.each = count;
    request.own_count = -1;
  }
  static int small(const Request& request) { return int(request.blocks.each); }
  static std::int64_t large(const Request& request) { return request.blocks.each; }
};

struct RanksCounts {
  using Small = const int*;
  using Large = const std::int64_t*;
  template <typename Count>
  static void set(Request& request, const Count* counts) {
    request.collective = Collective::reduce_scatter;
    request.blocks = {0, counts, sizeof(Count) == sizeof(std::int64_t)};
    request.own_count = -1;
  }
  static Small small(const Request& request) { return static_cast<Small>(request.blocks.array); }
  static Large large(const Request& request) { return static_cast<Large>(request.blocks.array); }
};

enum class Form { usual, large, fortran };

// Does a blocking call, or lets MPI do it. Returns the code for the program.
[[gnu::always_inline]] inline int do_or_bypass(Request& request) {
  Outcome outcome;
  Status status = catch_all([&] { outcome = dispatch(request); });
  if (status != Status::ok) [[unlikely]]
    end_for(request.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  status = catch_all([&] { code = call_mpi(request, outcome.reason); });
  if (status != Status::ok) [[unlikely]]
    (void)catch_all([&] { code = fail_on(request.comm, status); });
  return code;
}

// Begins a nonblocking call or makes a persistent request, or lets MPI do so.
template <typename ByMpi>
int begin_or_bypass(Request& request, Way way, void* handle, const ByMpi& by_mpi) {
  const bool persistent = way == Way::persistent;
  Outcome outcome;
  const Status status = catch_all([&] {
    outcome = persistent ? init_persistent(request, handle) : begin_nonblocking(request, handle);
  });
  if (status != Status::ok) [[unlikely]]
    end_for(request.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  if (device::some_need_copies()) [[unlikely]] {
    const Status staged =
        catch_all([&] { code = begin_staged(request, handle, persistent, by_mpi); });
    if (staged != Status::ok) end_for(request.comm, staged);
  } else {
    code = by_mpi(request);
  }
  if (!outcome.reason) return code;
  const BypassReason reason = *outcome.reason;
  if (reason == BypassReason::datatype && !persistent) count_other_bytes(request, code);
  if (code == 0) (void)catch_all([&] { estimate_nonblocking(request, reason); });
  return code;
}

// Returns the counts of a call as ints, for an MPI without the function for large counts; empty if
// a count is too large.
std::optional<int> as_ints(const char* name, std::int64_t count, Word) {
  if (count <= INT_MAX) return int(count);
  refuse_count(name, count);
  return std::nullopt;
}

// Returns an array of the counts as ints. The array is never freed, because MPI may read it until a
// request is complete, and this code does not learn when that is.
std::optional<const int*> as_ints(const char* name, const std::int64_t* counts, Word comm) {
  static std::mutex mutex;
  int ranks = 0;
  SLIMPI_NEXT("PMPI_Comm_size", int(Word, int*))(comm, &ranks);
  for (int rank = 0; rank < ranks; ++rank)
    if (!as_ints(name, counts[rank], comm)) return std::nullopt;
  std::optional<const int*> kept;
  const Status status = catch_all([&] {
    static auto* const known = new std::set<std::vector<int>>;
    const std::lock_guard lock(mutex);
    kept = known->emplace(counts, counts + ranks).first->data();
  });
  if (status != Status::ok) (void)catch_all([&] { fail_on(cut<Comm>(comm), status); });
  return kept;
}

// Calls the next definition of a function or of its form for large counts, by the MPI_ name or, for
// Fortran, by the PMPI_ name. `more`: the arguments after the communicator.
template <typename Counts>
struct Next {
  const char *name, *large;                               // both begin with PMPI_
  std::atomic<void*> known[2] = {}, known_large[2] = {};  // by MPI_, by PMPI_
  std::atomic<int> has_large = 0;

  // The test for the rare large form is predicted, so the usual form pays nothing for it.
  template <typename... More>
  int operator()(const Request& request, More... more) {
    if (request.large) [[unlikely]]
      return call_large(request, more...);
    return call_next(name, known, request, Counts::small(request), more...);
  }

  template <typename... More>
  [[gnu::noinline]] int call_large(const Request& request, More... more) {
    const int has = has_large.load(std::memory_order_relaxed);
    if (has != 0 ? has > 0 : has_next(large + 1, has_large))
      return call_next(large, known_large, request, Counts::large(request), more...);
    const auto ints = as_ints(large + 1, Counts::large(request), Word(request.comm));
    return ints ? call_next(name, known, request, *ints, more...) : mpi::kErrCount;
  }

  template <typename Count, typename... More>
  static int call_next(const char* name, std::atomic<void*> (&known)[2], const Request& request,
                       Count counts, More... more) {
    void* next = known[request.fortran].load(std::memory_order_acquire);
    if (next == nullptr) [[unlikely]]
      next = next_definition(request.fortran ? name : name + 1, known[request.fortran]);
    using Function = int(const void*, void*, Count, Word, Word, Word, More...);
    return reinterpret_cast<Function*>(next)(request.in, request.out, counts,
                                             Word(request.datatype), Word(request.op),
                                             Word(request.comm), more...);
  }
};

constinit Next<OneCount> next_Allreduce{"PMPI_Allreduce", "PMPI_Allreduce_c"};
constinit Next<OneCount> next_Iallreduce{"PMPI_Iallreduce", "PMPI_Iallreduce_c"};
constinit Next<OneCount> next_Allreduce_init{"PMPI_Allreduce_init", "PMPI_Allreduce_init_c"};
constinit Next<BlockCount> next_Reduce_scatter_block{"PMPI_Reduce_scatter_block",
                                                     "PMPI_Reduce_scatter_block_c"};
constinit Next<BlockCount> next_Ireduce_scatter_block{"PMPI_Ireduce_scatter_block",
                                                      "PMPI_Ireduce_scatter_block_c"};
constinit Next<BlockCount> next_Reduce_scatter_block_init{"PMPI_Reduce_scatter_block_init",
                                                          "PMPI_Reduce_scatter_block_init_c"};
constinit Next<RanksCounts> next_Reduce_scatter{"PMPI_Reduce_scatter", "PMPI_Reduce_scatter_c"};
constinit Next<RanksCounts> next_Ireduce_scatter{"PMPI_Ireduce_scatter", "PMPI_Ireduce_scatter_c"};
constinit Next<RanksCounts> next_Reduce_scatter_init{"PMPI_Reduce_scatter_init",
                                                     "PMPI_Reduce_scatter_init_c"};

// The common body of all exported functions of this file. A call of a PMPI_ name goes to MPI
// unchanged, unless MPI's Fortran bindings make the call. The function must be inline, because it
// looks at the caller of the exported function. `more` ends with the address of the program's MPI
// request, if there is one.
template <Way way, typename Counts, typename Count, typename... More>
[[gnu::always_inline]] inline int sum(Next<Counts>& next, Form form, const void* in, void* out,
                                      Count counts, Word datatype, Word op, Word comm,
                                      More... more) {
  mpi::find_abi();
  Request request{in,
                  out,
                  0,
                  cut_known<Datatype>(datatype),
                  cut_known<Op>(op),
                  cut_known<Comm>(comm),
                  form == Form::large,
                  form == Form::fortran};
  Counts::set(request, counts);
  const auto by_mpi = [&](const Request& one) { return next(one, more...); };
  if (form == Form::fortran && !SLIMPI_FROM_FORTRAN) return by_mpi(request);
  if constexpr (way == Way::blocking) {
    return do_or_bypass(request);
  } else {
    const Word last[] = {more...};
    return begin_or_bypass(request, way, reinterpret_cast<void*>(last[sizeof...(more) - 1]),
                           by_mpi);
  }
}

}  // namespace

SLIMPI_EXPORT int MPI_Allreduce(const void* in, void* out, int count, Word type, Word op,
                                Word comm) {
  return sum<Way::blocking>(next_Allreduce, Form::usual, in, out, count, type, op, comm);
}
SLIMPI_EXPORT int MPI_Allreduce_c(const void* in, void* out, std::int64_t count, Word type, Word op,
                                  Word comm) {
  return sum<Way::blocking>(next_Allreduce, Form::large, in, out, count, type, op, comm);
}
SLIMPI_EXPORT int PMPI_Allreduce(const void* in, void* out, int count, Word type, Word op,
                                 Word comm) {
  return sum<Way::blocking>(next_Allreduce, Form::fortran, in, out, count, type, op, comm);
}
SLIMPI_EXPORT int MPI_Iallreduce(const void* in, void* out, int count, Word type, Word op,
                                 Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Iallreduce, Form::usual, in, out, count, type, op, comm,
                               handle);
}
SLIMPI_EXPORT int MPI_Iallreduce_c(const void* in, void* out, std::int64_t count, Word type,
                                   Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Iallreduce, Form::large, in, out, count, type, op, comm,
                               handle);
}
SLIMPI_EXPORT int PMPI_Iallreduce(const void* in, void* out, int count, Word type, Word op,
                                  Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Iallreduce, Form::fortran, in, out, count, type, op, comm,
                               handle);
}
SLIMPI_EXPORT int MPI_Allreduce_init(const void* in, void* out, int count, Word type, Word op,
                                     Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Allreduce_init, Form::usual, in, out, count, type, op, comm,
                              info, handle);
}
SLIMPI_EXPORT int MPI_Allreduce_init_c(const void* in, void* out, std::int64_t count, Word type,
                                       Word op, Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Allreduce_init, Form::large, in, out, count, type, op, comm,
                              info, handle);
}
SLIMPI_EXPORT int PMPI_Allreduce_init(const void* in, void* out, int count, Word type, Word op,
                                      Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Allreduce_init, Form::fortran, in, out, count, type, op, comm,
                              info, handle);
}

SLIMPI_EXPORT int MPI_Reduce_scatter_block(const void* in, void* out, int count, Word type, Word op,
                                           Word comm) {
  return sum<Way::blocking>(next_Reduce_scatter_block, Form::usual, in, out, count, type, op, comm);
}
SLIMPI_EXPORT int MPI_Reduce_scatter_block_c(const void* in, void* out, std::int64_t count,
                                             Word type, Word op, Word comm) {
  return sum<Way::blocking>(next_Reduce_scatter_block, Form::large, in, out, count, type, op, comm);
}
SLIMPI_EXPORT int PMPI_Reduce_scatter_block(const void* in, void* out, int count, Word type,
                                            Word op, Word comm) {
  return sum<Way::blocking>(next_Reduce_scatter_block, Form::fortran, in, out, count, type, op,
                            comm);
}
SLIMPI_EXPORT int MPI_Ireduce_scatter_block(const void* in, void* out, int count, Word type,
                                            Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Ireduce_scatter_block, Form::usual, in, out, count, type, op,
                               comm, handle);
}
SLIMPI_EXPORT int MPI_Ireduce_scatter_block_c(const void* in, void* out, std::int64_t count,
                                              Word type, Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Ireduce_scatter_block, Form::large, in, out, count, type, op,
                               comm, handle);
}
SLIMPI_EXPORT int PMPI_Ireduce_scatter_block(const void* in, void* out, int count, Word type,
                                             Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Ireduce_scatter_block, Form::fortran, in, out, count, type, op,
                               comm, handle);
}
SLIMPI_EXPORT int MPI_Reduce_scatter_block_init(const void* in, void* out, int count, Word type,
                                                Word op, Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Reduce_scatter_block_init, Form::usual, in, out, count, type, op,
                              comm, info, handle);
}
SLIMPI_EXPORT int MPI_Reduce_scatter_block_init_c(const void* in, void* out, std::int64_t count,
                                                  Word type, Word op, Word comm, Word info,
                                                  Word handle) {
  return sum<Way::persistent>(next_Reduce_scatter_block_init, Form::large, in, out, count, type, op,
                              comm, info, handle);
}
SLIMPI_EXPORT int PMPI_Reduce_scatter_block_init(const void* in, void* out, int count, Word type,
                                                 Word op, Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Reduce_scatter_block_init, Form::fortran, in, out, count, type,
                              op, comm, info, handle);
}

SLIMPI_EXPORT int MPI_Reduce_scatter(const void* in, void* out, const int* counts, Word type,
                                     Word op, Word comm) {
  return sum<Way::blocking>(next_Reduce_scatter, Form::usual, in, out, counts, type, op, comm);
}
SLIMPI_EXPORT int MPI_Reduce_scatter_c(const void* in, void* out, const std::int64_t* counts,
                                       Word type, Word op, Word comm) {
  return sum<Way::blocking>(next_Reduce_scatter, Form::large, in, out, counts, type, op, comm);
}
SLIMPI_EXPORT int PMPI_Reduce_scatter(const void* in, void* out, const int* counts, Word type,
                                      Word op, Word comm) {
  return sum<Way::blocking>(next_Reduce_scatter, Form::fortran, in, out, counts, type, op, comm);
}
SLIMPI_EXPORT int MPI_Ireduce_scatter(const void* in, void* out, const int* counts, Word type,
                                      Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Ireduce_scatter, Form::usual, in, out, counts, type, op, comm,
                               handle);
}
SLIMPI_EXPORT int MPI_Ireduce_scatter_c(const void* in, void* out, const std::int64_t* counts,
                                        Word type, Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Ireduce_scatter, Form::large, in, out, counts, type, op, comm,
                               handle);
}
SLIMPI_EXPORT int PMPI_Ireduce_scatter(const void* in, void* out, const int* counts, Word type,
                                       Word op, Word comm, Word handle) {
  return sum<Way::nonblocking>(next_Ireduce_scatter, Form::fortran, in, out, counts, type, op, comm,
                               handle);
}
SLIMPI_EXPORT int MPI_Reduce_scatter_init(const void* in, void* out, const int* counts, Word type,
                                          Word op, Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Reduce_scatter_init, Form::usual, in, out, counts, type, op,
                              comm, info, handle);
}
SLIMPI_EXPORT int MPI_Reduce_scatter_init_c(const void* in, void* out, const std::int64_t* counts,
                                            Word type, Word op, Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Reduce_scatter_init, Form::large, in, out, counts, type, op,
                              comm, info, handle);
}
SLIMPI_EXPORT int PMPI_Reduce_scatter_init(const void* in, void* out, const int* counts, Word type,
                                           Word op, Word comm, Word info, Word handle) {
  return sum<Way::persistent>(next_Reduce_scatter_init, Form::fortran, in, out, counts, type, op,
                              comm, info, handle);
}

}  // namespace slimpi::intercept

namespace slimpi::call {

// Lets MPI do the call. Called inside the catch-all, which lets the exceptions of the program's
// error handlers pass.
int call_mpi_unstaged(const Request& request) {
  using namespace intercept;
  // Tests g_fibers, the number of sums in flight, first: if it is 0, no thread is in a fiber. A sum
  // that a hook makes in a fiber stays on the hook's communicator.
  if (g_fibers.load(std::memory_order_relaxed) != 0 && Fiber::inside() && !algorithm::inside_hook())
    return sum_by_mpi(request, [](const Request& one, mpi::Request* handle) {
      const auto last = reinterpret_cast<Word>(handle);
      if (one.collective == Collective::allreduce) return next_Iallreduce(one, last);
      return one.blocks.array == nullptr ? next_Ireduce_scatter_block(one, last)
                                         : next_Ireduce_scatter(one, last);
    });
  return programs_code([&] {
    if (request.collective == Collective::allreduce) return next_Allreduce(request);
    return request.blocks.array == nullptr ? next_Reduce_scatter_block(request)
                                           : next_Reduce_scatter(request);
  });
}

}  // namespace slimpi::call
