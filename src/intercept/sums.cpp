// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Allreduce, MPI_Reduce_scatter_block and MPI_Reduce_scatter, with their nonblocking,
// persistent and large-count forms. Their arguments differ only in the counts: one count, or an
// array with a count for each rank.
#include <cstdint>

#include "algorithm/hook.h"
#include "intercept/next.h"

namespace slimpi::intercept {

namespace {

// How the functions pass their counts: set() stores them in a request. For the other members see
// Next.
struct SumCounts {
  template <typename Count, typename... More>
  static int call(void* next, const Request& request, Count counts, More... more) {
    using Function = int(const void*, void*, Count, Word, Word, Word, More...);
    return reinterpret_cast<Function*>(next)(request.in, request.out, counts,
                                             Word(request.datatype), Word(request.op),
                                             Word(request.comm), more...);
  }
};

struct OneCount : SumCounts {
  static void set(Request& request, std::int64_t count) { request.count = count; }
  static int small(const Request& request) { return int(request.count); }
  static std::int64_t large(const Request& request) { return request.count; }
  static auto ints(const char* name, const Request& request) {
    return as_ints(name, large(request));
  }
};

struct BlockCount : SumCounts {
  static void set(Request& request, std::int64_t count) {
    request.collective = Collective::reduce_scatter;
    request.blocks.each = count;
    request.own_count = -1;
  }
  static int small(const Request& request) { return int(request.blocks.each); }
  static std::int64_t large(const Request& request) { return request.blocks.each; }
  static auto ints(const char* name, const Request& request) {
    return as_ints(name, large(request));
  }
};

struct RanksCounts : SumCounts {
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
  static auto ints(const char* name, const Request& request) {
    return as_ints(name, large(request), Word(request.comm));
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

// Shared by this file's exported functions: describes the call as a Request and passes it to
// take().
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
  return take<way>(next, form, request, more...);
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

// Lets MPI run the call. If the program's error handler throws an exception, programs_code() marks
// it, so that catch_all(), which is around this call, passes it on.
int call_mpi_unstaged(const Request& request) {
  using namespace intercept;
  // Tests g_fibers, the number of sums in flight, first: if it is 0, no thread is in a fiber. A sum
  // that a hook makes in a fiber stays on the hook's communicator.
  if (g_fibers.load(std::memory_order_relaxed) != 0 && Fiber::inside() && !algorithm::inside_hook())
    return sum_by_mpi(request, [](const Request& one, mpi::Request* handle) {
      const auto last = reinterpret_cast<Word>(handle);
      if (one.collective == Collective::allreduce) return next_Iallreduce(one, last);
      if (one.gathers()) return begin_gather_by_mpi(one, last);
      return one.blocks.array == nullptr ? next_Ireduce_scatter_block(one, last)
                                         : next_Ireduce_scatter(one, last);
    });
  return programs_code([&] {
    if (request.collective == Collective::allreduce) return next_Allreduce(request);
    if (request.gathers()) return gather_by_mpi(request);
    return request.blocks.array == nullptr ? next_Reduce_scatter_block(request)
                                           : next_Reduce_scatter(request);
  });
}

}  // namespace slimpi::call
