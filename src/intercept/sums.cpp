// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allreduce, MPI_Reduce_scatter_block and MPI_Reduce_scatter, with their nonblocking,
// persistent and large-count forms. Their arguments differ in the counts only: one, or an array of
// the ranks'.
//
// Programs such as mpi4py use a function for large counts where they find one. With an MPI older
// than 4.0, or other than MPICH, they may find only the one here. It then does what the function
// for small counts can do.
#include <climits>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "device/device.h"
#include "intercept/names.h"

namespace slimpi::intercept {

namespace {

// What the functions say differently of counts. set: into a call; small, large: from it.
struct OneCount {
  using Small = int;
  using Large = std::int64_t;
  static void set(Allreduce& call, Large count) { call.count = count; }
  static int small(const Allreduce& call) { return int(call.count); }
  static Large large(const Allreduce& call) { return call.count; }
};

struct BlockCount {
  using Small = int;
  using Large = std::int64_t;
  static void set(Allreduce& call, Large count) {
    call.collective = Collective::reduce_scatter;
    call.blocks.each = count;
    call.own_count = -1;
  }
  static int small(const Allreduce& call) { return int(call.blocks.each); }
  static Large large(const Allreduce& call) { return call.blocks.each; }
};

struct RanksCounts {
  using Small = const int*;
  using Large = const std::int64_t*;
  template <typename Count>
  static void set(Allreduce& call, const Count* counts) {
    call.collective = Collective::reduce_scatter;
    call.blocks = {0, counts, sizeof(Count) == sizeof(std::int64_t)};
    call.own_count = -1;
  }
  static Small small(const Allreduce& call) { return static_cast<Small>(call.blocks.array); }
  static Large large(const Allreduce& call) { return static_cast<Large>(call.blocks.array); }
};

enum class Form { usual, large, fortran };

template <typename Counts, typename Count>
[[gnu::always_inline]] inline Allreduce make_call(const void* in, void* out, Count count,
                                                  Word datatype, Word op, Word comm,
                                                  Form form = Form::usual) {
  mpi::find_abi();
  Allreduce call{in,
                 out,
                 0,
                 cut_known<Datatype>(datatype),
                 cut_known<Op>(op),
                 cut_known<Comm>(comm),
                 form == Form::large,
                 form == Form::fortran};
  Counts::set(call, count);
  return call;
}

// Does the call, or lets MPI do it.
[[gnu::always_inline]] inline int do_or_bypass(Allreduce& call) {
  Outcome outcome;
  Status status = catch_all([&] { outcome = dispatch(call); });
  if (status != Status::ok) [[unlikely]]
    end_for(call.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  status = catch_all([&] { code = call_mpi(call, outcome.reason); });
  if (status != Status::ok) [[unlikely]]
    (void)catch_all([&] { code = fail_on(call.comm, status); });
  return code;
}

// Begins or makes the call by `ours`, or lets MPI do so.
template <typename ByMpi>
int begin_or_bypass(Allreduce& call, Word request, Outcome (*ours)(Allreduce&, void*),
                    const ByMpi& by_mpi) {
  Outcome outcome;
  const Status status = catch_all([&] { outcome = ours(call, reinterpret_cast<void*>(request)); });
  if (status != Status::ok) [[unlikely]]
    end_for(call.comm, status);
  if (outcome.done) return outcome.code;
  int code = 0;
  if (device::some_need_copies()) [[unlikely]] {
    (void)catch_all([&] {
      code = begin_staged(call, reinterpret_cast<void*>(request), ours != &begin, by_mpi);
    });
  } else {
    code = by_mpi(call);
  }
  if (!outcome.reason) return code;
  const BypassReason reason = *outcome.reason;
  if (reason == BypassReason::datatype && ours == &begin) count_other_bytes(call, code);
  if (code == 0) (void)catch_all([&] { estimate_nonblocking(call, reason); });
  return code;
}

// For an MPI without the function for large counts: the counts of a call as ints. Empty where one
// is larger.
std::optional<int> as_ints(const char* name, std::int64_t count, Word) {
  if (count <= INT_MAX) return int(count);
  refuse_count(name, count);
  return std::nullopt;
}

// Each array is kept for good: MPI may read it until a request is complete, which nobody tells
// here.
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

}  // namespace

// Defines function(call, more...), which calls the next definition of MPI_name; `more` follows the
// communicator. The usual form costs nothing for the large one.
#define SLIMPI_BY_MPI(function, name, Counts)                                                    \
  template <typename... More>                                                                    \
  int function##_with(const Allreduce& call, Counts::Small counts, More... more) {               \
    using Function = int(const void*, void*, Counts::Small, Word, Word, Word, More...);          \
    auto* const next =                                                                           \
        call.fortran ? SLIMPI_NEXT("PMPI_" name, Function) : SLIMPI_NEXT("MPI_" name, Function); \
    return next(call.in, call.out, counts, Word(call.datatype), Word(call.op), Word(call.comm),  \
                more...);                                                                        \
  }                                                                                              \
  template <typename... More>                                                                    \
  [[gnu::noinline]] int function##_large(const Allreduce& call, More... more) {                  \
    using Function = int(const void*, void*, Counts::Large, Word, Word, Word, More...);          \
    if (SLIMPI_HAS_NEXT("MPI_" name "_c")) {                                                     \
      auto* const next = call.fortran ? SLIMPI_NEXT("PMPI_" name "_c", Function)                 \
                                      : SLIMPI_NEXT("MPI_" name "_c", Function);                 \
      return next(call.in, call.out, Counts::large(call), Word(call.datatype), Word(call.op),    \
                  Word(call.comm), more...);                                                     \
    }                                                                                            \
    const auto ints = as_ints("MPI_" name "_c", Counts::large(call), Word(call.comm));           \
    return ints ? function##_with(call, *ints, more...) : mpi::kErrCount;                        \
  }                                                                                              \
  template <typename... More>                                                                    \
  int function(const Allreduce& call, More... more) {                                            \
    if (call.large) [[unlikely]]                                                                 \
      return function##_large(call, more...);                                                    \
    return function##_with(call, Counts::small(call), more...);                                  \
  }

// Defines the three functions with a prefix and a suffix.
#define SLIMPI_FORM(prefix, name, later, suffix, Counts, Count, form)                            \
  SLIMPI_EXPORT int prefix##name##suffix(const void* in, void* out, Counts::Count counts,        \
                                         Word datatype, Word op, Word comm) {                    \
    Allreduce call = make_call<Counts>(in, out, counts, datatype, op, comm, form);               \
    if (form == Form::fortran && !SLIMPI_FROM_FORTRAN) return name##_by_mpi(call);               \
    return do_or_bypass(call);                                                                   \
  }                                                                                              \
  SLIMPI_EXPORT int prefix##later##suffix(const void* in, void* out, Counts::Count counts,       \
                                          Word datatype, Word op, Word comm, Word request) {     \
    Allreduce call = make_call<Counts>(in, out, counts, datatype, op, comm, form);               \
    const auto by_mpi = [&](const Allreduce& one) { return later##_by_mpi(one, request); };      \
    if (form == Form::fortran && !SLIMPI_FROM_FORTRAN) return by_mpi(call);                      \
    return begin_or_bypass(call, request, begin, by_mpi);                                        \
  }                                                                                              \
  SLIMPI_EXPORT int prefix##name##_init##suffix(const void* in, void* out, Counts::Count counts, \
                                                Word datatype, Word op, Word comm, Word info,    \
                                                Word request) {                                  \
    Allreduce call = make_call<Counts>(in, out, counts, datatype, op, comm, form);               \
    const auto by_mpi = [&](const Allreduce& one) {                                              \
      return name##_init_by_mpi(one, info, request);                                             \
    };                                                                                           \
    if (form == Form::fortran && !SLIMPI_FROM_FORTRAN) return by_mpi(call);                      \
    return begin_or_bypass(call, request, init_persistent, by_mpi);                              \
  }

// Defines a function in all its forms; `later` is the name of the nonblocking one.
#define SLIMPI_SUM(name, later, Counts)                          \
  namespace {                                                    \
  SLIMPI_BY_MPI(name##_by_mpi, #name, Counts)                    \
  SLIMPI_BY_MPI(later##_by_mpi, #later, Counts)                  \
  SLIMPI_BY_MPI(name##_init_by_mpi, #name "_init", Counts)       \
  }                                                              \
  SLIMPI_FORM(MPI_, name, later, , Counts, Small, Form::usual)   \
  SLIMPI_FORM(MPI_, name, later, _c, Counts, Large, Form::large) \
  SLIMPI_FORM(PMPI_, name, later, , Counts, Small, Form::fortran)

SLIMPI_SUM(Allreduce, Iallreduce, OneCount)
SLIMPI_SUM(Reduce_scatter_block, Ireduce_scatter_block, BlockCount)
SLIMPI_SUM(Reduce_scatter, Ireduce_scatter, RanksCounts)

}  // namespace slimpi::intercept

namespace slimpi::call {

// Called inside the catch-all: what MPI's error handlers throw is the program's.
int call_mpi_unstaged(const Allreduce& call) {
  using namespace intercept;
  // g_fibers counts the sums in flight; without one no thread is in a fiber.
  if (g_fibers.load(std::memory_order_relaxed) != 0 && Fiber::inside())
    return sum_by_mpi(call, [](const Allreduce& one, mpi::Request* request) {
      const auto handle = reinterpret_cast<Word>(request);
      if (one.collective == Collective::allreduce) return Iallreduce_by_mpi(one, handle);
      return one.blocks.array == nullptr ? Ireduce_scatter_block_by_mpi(one, handle)
                                         : Ireduce_scatter_by_mpi(one, handle);
    });
  return programs_code([&] {
    if (call.collective == Collective::allreduce) return Allreduce_by_mpi(call);
    return call.blocks.array == nullptr ? Reduce_scatter_block_by_mpi(call)
                                        : Reduce_scatter_by_mpi(call);
  });
}

}  // namespace slimpi::call
