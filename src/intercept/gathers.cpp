// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Allgather and MPI_Allgatherv, with their nonblocking, persistent and large-count
// forms.
#include <cstdint>

#include "intercept/next.h"

namespace slimpi::intercept {

namespace {

// The counts of MPI_Allgather. For their functions, and those of the counts of MPI_Allgatherv, see
// Next.
struct OneBlock {
  template <typename Count>
  struct Counts {
    Count sent, each;
  };
  static Counts<int> small(const Request& request) {
    return {int(request.sent.count), int(request.blocks.each)};
  }
  static Counts<std::int64_t> large(const Request& request) {
    return {request.sent.count, request.blocks.each};
  }
  static std::optional<Counts<int>> ints(const char* name, const Request& request) {
    const auto sent = as_ints(name, request.sent.count);
    const auto each = as_ints(name, request.blocks.each);
    if (!sent || !each) return std::nullopt;
    return Counts<int>{*sent, *each};
  }
  template <typename Count, typename... More>
  static int call(void* next, const Request& request, Counts<Count> counts, More... more) {
    using Function = int(const void*, Count, Word, void*, Count, Word, Word, More...);
    return reinterpret_cast<Function*>(next)(request.in, counts.sent, Word(request.sent.datatype),
                                             request.out, counts.each, Word(request.datatype),
                                             Word(request.comm), more...);
  }
};

struct RanksBlocks {
  template <typename Count>
  struct Counts {
    Count sent;
    const Count *array, *places;
  };
  template <typename Count>
  static Counts<Count> read(const Request& request) {
    return {Count(request.sent.count), static_cast<const Count*>(request.blocks.array),
            static_cast<const Count*>(request.blocks.places)};
  }
  static Counts<int> small(const Request& request) { return read<int>(request); }
  static Counts<std::int64_t> large(const Request& request) { return read<std::int64_t>(request); }
  static std::optional<Counts<int>> ints(const char* name, const Request& request) {
    const auto [count, array, places] = large(request);
    const auto comm = Word(request.comm);
    const auto sent = as_ints(name, count);
    const auto counts = as_ints(name, array, comm, true),
               begins = as_ints(name, places, comm, true);
    if (!sent || !counts || !begins) return std::nullopt;
    return Counts<int>{*sent, *counts, *begins};
  }
  template <typename Count, typename... More>
  static int call(void* next, const Request& request, Counts<Count> counts, More... more) {
    using Function =
        int(const void*, Count, Word, void*, const Count*, const Count*, Word, Word, More...);
    return reinterpret_cast<Function*>(next)(request.in, counts.sent, Word(request.sent.datatype),
                                             request.out, counts.array, counts.places,
                                             Word(request.datatype), Word(request.comm), more...);
  }
};

// Shared by this file's exported functions: describes the call as a Request and passes it to
// take(). The operation of the request is MPI_SUM, as call/request.h explains.
template <Way way, typename Counts, typename... More>
[[gnu::always_inline]] inline int gather(Next<Counts>& next, Form form, const void* in,
                                         std::int64_t sent, Word sent_type, void* out,
                                         BlockCounts blocks, Word type, Word comm, More... more) {
  Request request = request_of(form, in, out, type, comm);
  request.op = mpi::abi.op_sum;
  request.collective = Collective::allgather;
  request.blocks = std::move(blocks);
  request.sent = {sent, cut_known<Datatype>(sent_type)};
  return take<way>(next, form, request, more...);
}

}  // namespace

// Define one function of SLIMPI_COLLECTIVE.
#define SLIMPI_GATHER(symbol, name, form, way, Count, more, names)                             \
  SLIMPI_EXPORT int symbol(const void* in, Count sent, Word sent_type, void* out, Count count, \
                           Word type, Word comm SLIMPI_MORE more) {                            \
    return gather<Way::way>(next_##name, Form::form, in, sent, sent_type, out, {count}, type,  \
                            comm SLIMPI_MORE names);                                           \
  }
#define SLIMPI_GATHER_OF_BLOCKS(symbol, name, form, way, Count, more, names)                   \
  SLIMPI_EXPORT int symbol(const void* in, Count sent, Word sent_type, void* out,              \
                           const Count* counts, const Count* places, Word type,                \
                           Word comm SLIMPI_MORE more) {                                       \
    return gather<Way::way>(next_##name, Form::form, in, sent, sent_type, out,                 \
                            {0, counts, sizeof(Count) == sizeof(std::int64_t), false, places}, \
                            type, comm SLIMPI_MORE names);                                     \
  }

SLIMPI_COLLECTIVE(SLIMPI_GATHER, OneBlock, Allgather, Iallgather)
SLIMPI_COLLECTIVE(SLIMPI_GATHER_OF_BLOCKS, RanksBlocks, Allgatherv, Iallgatherv)

int gather_by_mpi(const Request& request) {
  return request.blocks.array == nullptr ? next_Allgather(request) : next_Allgatherv(request);
}

int begin_gather_by_mpi(const Request& request, Word handle) {
  return request.blocks.array == nullptr ? next_Iallgather(request, handle)
                                         : next_Iallgatherv(request, handle);
}

}  // namespace slimpi::intercept
