// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather and MPI_Allgatherv, with their nonblocking, persistent and large-count forms.
#include <cstdint>

#include "intercept/next.h"

namespace slimpi::intercept {

namespace {

// The counts of MPI_Allgather and of MPI_Allgatherv; see Next.
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
    const auto counts = as_ints(name, array, comm), begins = as_ints(name, places, comm);
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

// The common bodies of the exported functions of this file; see take(). A request has the operation
// MPI_SUM (call/request.h).
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

SLIMPI_EXPORT int MPI_Allgather(const void* in, int sent, Word sent_type, void* out, int count,
                                Word type, Word comm) {
  return gather<Way::blocking>(next_Allgather, Form::usual, in, sent, sent_type, out, count, type,
                               comm);
}
SLIMPI_EXPORT int MPI_Allgather_c(const void* in, std::int64_t sent, Word sent_type, void* out,
                                  std::int64_t count, Word type, Word comm) {
  return gather<Way::blocking>(next_Allgather, Form::large, in, sent, sent_type, out, count, type,
                               comm);
}
SLIMPI_EXPORT int PMPI_Allgather(const void* in, int sent, Word sent_type, void* out, int count,
                                 Word type, Word comm) {
  return gather<Way::blocking>(next_Allgather, Form::fortran, in, sent, sent_type, out, count, type,
                               comm);
}
SLIMPI_EXPORT int MPI_Iallgather(const void* in, int sent, Word sent_type, void* out, int count,
                                 Word type, Word comm, Word handle) {
  return gather<Way::nonblocking>(next_Iallgather, Form::usual, in, sent, sent_type, out, count,
                                  type, comm, handle);
}
SLIMPI_EXPORT int MPI_Iallgather_c(const void* in, std::int64_t sent, Word sent_type, void* out,
                                   std::int64_t count, Word type, Word comm, Word handle) {
  return gather<Way::nonblocking>(next_Iallgather, Form::large, in, sent, sent_type, out, count,
                                  type, comm, handle);
}
SLIMPI_EXPORT int PMPI_Iallgather(const void* in, int sent, Word sent_type, void* out, int count,
                                  Word type, Word comm, Word handle) {
  return gather<Way::nonblocking>(next_Iallgather, Form::fortran, in, sent, sent_type, out, count,
                                  type, comm, handle);
}
SLIMPI_EXPORT int MPI_Allgather_init(const void* in, int sent, Word sent_type, void* out, int count,
                                     Word type, Word comm, Word info, Word handle) {
  return gather<Way::persistent>(next_Allgather_init, Form::usual, in, sent, sent_type, out, count,
                                 type, comm, info, handle);
}
SLIMPI_EXPORT int MPI_Allgather_init_c(const void* in, std::int64_t sent, Word sent_type, void* out,
                                       std::int64_t count, Word type, Word comm, Word info,
                                       Word handle) {
  return gather<Way::persistent>(next_Allgather_init, Form::large, in, sent, sent_type, out, count,
                                 type, comm, info, handle);
}
SLIMPI_EXPORT int PMPI_Allgather_init(const void* in, int sent, Word sent_type, void* out,
                                      int count, Word type, Word comm, Word info, Word handle) {
  return gather<Way::persistent>(next_Allgather_init, Form::fortran, in, sent, sent_type, out,
                                 count, type, comm, info, handle);
}

SLIMPI_EXPORT int MPI_Allgatherv(const void* in, int sent, Word sent_type, void* out,
                                 const int* counts, const int* places, Word type, Word comm) {
  return gather_blocks<Way::blocking>(next_Allgatherv, Form::usual, in, sent, sent_type, out,
                                      counts, places, type, comm);
}
SLIMPI_EXPORT int MPI_Allgatherv_c(const void* in, std::int64_t sent, Word sent_type, void* out,
                                   const std::int64_t* counts, const std::int64_t* places,
                                   Word type, Word comm) {
  return gather_blocks<Way::blocking>(next_Allgatherv, Form::large, in, sent, sent_type, out,
                                      counts, places, type, comm);
}
SLIMPI_EXPORT int PMPI_Allgatherv(const void* in, int sent, Word sent_type, void* out,
                                  const int* counts, const int* places, Word type, Word comm) {
  return gather_blocks<Way::blocking>(next_Allgatherv, Form::fortran, in, sent, sent_type, out,
                                      counts, places, type, comm);
}
SLIMPI_EXPORT int MPI_Iallgatherv(const void* in, int sent, Word sent_type, void* out,
                                  const int* counts, const int* places, Word type, Word comm,
                                  Word handle) {
  return gather_blocks<Way::nonblocking>(next_Iallgatherv, Form::usual, in, sent, sent_type, out,
                                         counts, places, type, comm, handle);
}
SLIMPI_EXPORT int MPI_Iallgatherv_c(const void* in, std::int64_t sent, Word sent_type, void* out,
                                    const std::int64_t* counts, const std::int64_t* places,
                                    Word type, Word comm, Word handle) {
  return gather_blocks<Way::nonblocking>(next_Iallgatherv, Form::large, in, sent, sent_type, out,
                                         counts, places, type, comm, handle);
}
SLIMPI_EXPORT int PMPI_Iallgatherv(const void* in, int sent, Word sent_type, void* out,
                                   const int* counts, const int* places, Word type, Word comm,
                                   Word handle) {
  return gather_blocks<Way::nonblocking>(next_Iallgatherv, Form::fortran, in, sent, sent_type, out,
                                         counts, places, type, comm, handle);
}
SLIMPI_EXPORT int MPI_Allgatherv_init(const void* in, int sent, Word sent_type, void* out,
                                      const int* counts, const int* places, Word type, Word comm,
                                      Word info, Word handle) {
  return gather_blocks<Way::persistent>(next_Allgatherv_init, Form::usual, in, sent, sent_type, out,
                                        counts, places, type, comm, info, handle);
}
SLIMPI_EXPORT int MPI_Allgatherv_init_c(const void* in, std::int64_t sent, Word sent_type,
                                        void* out, const std::int64_t* counts,
                                        const std::int64_t* places, Word type, Word comm, Word info,
                                        Word handle) {
  return gather_blocks<Way::persistent>(next_Allgatherv_init, Form::large, in, sent, sent_type, out,
                                        counts, places, type, comm, info, handle);
}
SLIMPI_EXPORT int PMPI_Allgatherv_init(const void* in, int sent, Word sent_type, void* out,
                                       const int* counts, const int* places, Word type, Word comm,
                                       Word info, Word handle) {
  return gather_blocks<Way::persistent>(next_Allgatherv_init, Form::fortran, in, sent, sent_type,
                                        out, counts, places, type, comm, info, handle);
}

}  // namespace slimpi::intercept
