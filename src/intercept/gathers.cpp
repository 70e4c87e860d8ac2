// SPDX-License-Identifier: BSD-3-Clause
// Defines MPI_Allgather and MPI_Allgatherv, with their nonblocking, persistent and large-count
// forms.
#include <cstdint>

#include "intercept/next.h"

namespace slimpi::intercept {

namespace {

// The counts of MPI_Allgather. RanksBlocks holds those of MPI_Allgatherv. For the functions of both
// see Next.
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

constinit Next<OneBlock> next_Allgather{"PMPI_Allgather", "PMPI_Allgather_c"};
constinit Next<OneBlock> next_Iallgather{"PMPI_Iallgather", "PMPI_Iallgather_c"};
constinit Next<OneBlock> next_Allgather_init{"PMPI_Allgather_init", "PMPI_Allgather_init_c"};
constinit Next<RanksBlocks> next_Allgatherv{"PMPI_Allgatherv", "PMPI_Allgatherv_c"};
constinit Next<RanksBlocks> next_Iallgatherv{"PMPI_Iallgatherv", "PMPI_Iallgatherv_c"};
constinit Next<RanksBlocks> next_Allgatherv_init{"PMPI_Allgatherv_init", "PMPI_Allgatherv_init_c"};

// Shared by this file's exported functions: describe the call as a Request and pass it to take().
// The operation of the request is MPI_SUM, as call/request.h explains.
[[gnu::always_inline]] inline Request request_of(Form form, const void* in, std::int64_t sent,
                                                 Word sent_type, void* out, BlockCounts blocks,
                                                 Word type, Word comm) {
  mpi::find_abi();
  Request request{in,
                  out,
                  0,
                  cut_known<Datatype>(type),
                  mpi::abi.op_sum,
                  cut_known<Comm>(comm),
                  form == Form::large,
                  form == Form::fortran};
  request.collective = Collective::allgather;
  request.blocks = std::move(blocks);
  request.own_count = -1;
  request.sent = {sent, cut_known<Datatype>(sent_type)};
  return request;
}

template <Way way, typename... More>
[[gnu::always_inline]] inline int gather(Next<OneBlock>& next, Form form, const void* in,
                                         std::int64_t sent, Word sent_type, void* out,
                                         std::int64_t count, Word type, Word comm, More... more) {
  Request request = request_of(form, in, sent, sent_type, out, {count}, type, comm);
  return take<way>(next, form, request, more...);
}

template <Way way, typename Count, typename... More>
[[gnu::always_inline]] inline int gather_blocks(Next<RanksBlocks>& next, Form form, const void* in,
                                                Count sent, Word sent_type, void* out,
                                                const Count* counts, const Count* places, Word type,
                                                Word comm, More... more) {
  BlockCounts blocks{0, counts, sizeof(Count) == sizeof(std::int64_t)};
  blocks.places = places;
  Request request = request_of(form, in, sent, sent_type, out, std::move(blocks), type, comm);
  return take<way>(next, form, request, more...);
}

}  // namespace

int gather_by_mpi(const Request& request) {
  return request.blocks.array == nullptr ? next_Allgather(request) : next_Allgatherv(request);
}

int begin_gather_by_mpi(const Request& request, Word handle) {
  return request.blocks.array == nullptr ? next_Iallgather(request, handle)
                                         : next_Iallgatherv(request, handle);
}

// Define the names of a function: with int counts, with large counts, and for Fortran. `more`
// declares the parameters after the communicator, and `names` lists them as arguments.
#define SLIMPI_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#define SLIMPI_GATHER_AS(symbol, name, form, way, Count, more, names)                          \
  SLIMPI_EXPORT int symbol(const void* in, Count sent, Word sent_type, void* out, Count count, \
                           Word type, Word comm SLIMPI_MORE more) {                            \
    return gather<Way::way>(next_##name, Form::form, in, sent, sent_type, out, count, type,    \
                            comm SLIMPI_MORE names);                                           \
  }
#define SLIMPI_GATHER_BLOCKS_AS(symbol, name, form, way, Count, more, names)                  \
  SLIMPI_EXPORT int symbol(const void* in, Count sent, Word sent_type, void* out,             \
                           const Count* counts, const Count* places, Word type,               \
                           Word comm SLIMPI_MORE more) {                                      \
    return gather_blocks<Way::way>(next_##name, Form::form, in, sent, sent_type, out, counts, \
                                   places, type, comm SLIMPI_MORE names);                     \
  }
#define SLIMPI_THREE(define, name, way, more, names)                      \
  define(MPI_##name, name, usual, way, int, more, names)                  \
      define(MPI_##name##_c, name, large, way, std::int64_t, more, names) \
          define(PMPI_##name, name, fortran, way, int, more, names)

SLIMPI_THREE(SLIMPI_GATHER_AS, Allgather, blocking, (), ())
SLIMPI_THREE(SLIMPI_GATHER_AS, Iallgather, nonblocking, (Word handle), (handle))
SLIMPI_THREE(SLIMPI_GATHER_AS, Allgather_init, persistent, (Word info, Word handle), (info, handle))
SLIMPI_THREE(SLIMPI_GATHER_BLOCKS_AS, Allgatherv, blocking, (), ())
SLIMPI_THREE(SLIMPI_GATHER_BLOCKS_AS, Iallgatherv, nonblocking, (Word handle), (handle))
SLIMPI_THREE(SLIMPI_GATHER_BLOCKS_AS, Allgatherv_init, persistent, (Word info, Word handle),
             (info, handle))

}  // namespace slimpi::intercept
