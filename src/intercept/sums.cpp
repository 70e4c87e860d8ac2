// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Allreduce, MPI_Reduce_scatter_block and MPI_Reduce_scatter, with their nonblocking,
// persistent and large-count forms. Their arguments differ only in the counts: one count, or an
// array with a count for each rank.
#include <cstdint>

#include "algorithm/hook.h"
#include "intercept/next.h"

namespace slimpi::intercept {

namespace {

// The counts of a function: set() writes them into a call; for the other functions see Next.
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
  }
  static Small small(const Request& request) { return static_cast<Small>(request.blocks.array); }
  static Large large(const Request& request) { return static_cast<Large>(request.blocks.array); }
  static auto ints(const char* name, const Request& request) {
    return as_ints(name, large(request), Word(request.comm));
  }
};

// Shared by this file's exported functions: describes the call as a Request and passes it to
// take().
template <Way way, typename Counts, typename Count, typename... More>
[[gnu::always_inline]] inline int sum(Next<Counts>& next, Form form, const void* in, void* out,
                                      Count counts, Word datatype, Word op, Word comm,
                                      More... more) {
  Request request = request_of(form, in, out, datatype, comm);
  request.op = cut_known<Op>(op);
  Counts::set(request, counts);
  return take<way>(next, form, request, more...);
}

}  // namespace

// Define one function of SLIMPI_COLLECTIVE.
#define SLIMPI_SUM(symbol, name, form, way, Count, more, names)                         \
  SLIMPI_EXPORT int symbol(const void* in, void* out, Count counts, Word type, Word op, \
                           Word comm SLIMPI_MORE more) {                                \
    return sum<Way::way>(next_##name, Form::form, in, out, counts, type, op,            \
                         comm SLIMPI_MORE names);                                       \
  }
#define SLIMPI_SUM_OF_BLOCKS(symbol, name, form, way, Count, more, names) \
  SLIMPI_SUM(symbol, name, form, way, const Count*, more, names)

SLIMPI_COLLECTIVE(SLIMPI_SUM, OneCount, Allreduce, Iallreduce)
SLIMPI_COLLECTIVE(SLIMPI_SUM, BlockCount, Reduce_scatter_block, Ireduce_scatter_block)
SLIMPI_COLLECTIVE(SLIMPI_SUM_OF_BLOCKS, RanksCounts, Reduce_scatter, Ireduce_scatter)

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
