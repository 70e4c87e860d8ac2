/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one sum of floats by a collective that slimpi takes, in any of its forms. The name is
 * MPI's: Allreduce, Iallreduce, Allreduce_init, Reduce_scatter_block, Ireduce_scatter, Allgather,
 * Iallgatherv, ... The blocks of a Reduce_scatter or an Allgatherv have different lengths, and some
 * are empty. */
#pragma once
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helper/mpi/mpi4.h"

enum { MOST_RANKS = 64 };

static inline int names_blocks(const char* collective) {
  return strstr(collective, "educe_scatter") != NULL;
}
static inline int names_gather(const char* collective) {
  return strstr(collective, "llgather") != NULL;
}
static inline int names_equal_blocks(const char* collective) {
  return strstr(collective, "educe_scatter_block") != NULL ||
         (names_gather(collective) && strstr(collective, "llgatherv") == NULL);
}

/* Divides about `count` elements among the ranks. Writes the length of each rank's block to
 * `blocks`, and returns the sum of the lengths. */
static inline long divide_blocks(const char* collective, long count, int ranks, int* blocks) {
  static const int weights[] = {3, 0, 2, 4, 1};
  long all = 0, total = 0;
  int rank, last = 0; /* one with some elements */
  for (rank = 0; rank < ranks; ++rank) all += weights[(rank + count) % 5];
  for (rank = 0; rank < ranks; ++rank) {
    const int weight = all == 0 ? 1 : weights[(rank + count) % 5];
    blocks[rank] = (int)(names_equal_blocks(collective) ? count / ranks
                                                        : count / (all == 0 ? 1 : all) * weight);
    total += blocks[rank];
    if (weight != 0) last = rank;
  }
  if (names_equal_blocks(collective)) return total;
  blocks[last] += (int)(count - total);
  return count;
}

/* Starts a persistent request, and returns when the request is complete. */
static inline int complete(const char* collective, MPI_Request* request) {
  const int persistent = strstr(collective, "_init") != NULL;
  int code = persistent ? MPI_Start(request) : MPI_SUCCESS;
  if (code == MPI_SUCCESS) code = MPI_Wait(request, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(request);
  return code;
}

/* Gathers the blocks of all ranks. This rank's block is at its place in `in`, a whole vector. In
 * the result of an Allgatherv there are `gap` elements between blocks. `large`: by the function for
 * large counts. Returns MPI's code. */
static inline int gather_elements(const char* collective, const void* in, void* out,
                                  const int* blocks, int gap, int large, MPI_Datatype type,
                                  MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Count wide[MOST_RANKS];
  MPI_Aint wide_places[MOST_RANKS];
  int rank, ranks, me, size, places[MOST_RANKS], first = 0, code = MPI_ERR_OTHER;
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_rank(comm, &me);
  MPI_Type_size(type, &size);
  for (rank = 0; rank < ranks; first += blocks[rank++]) {
    wide[rank] = blocks[rank];
    wide_places[rank] = places[rank] = first + rank * gap;
    if (rank == me && in != MPI_IN_PLACE) in = (const char*)in + (size_t)first * (size_t)size;
  }
#define IS(name) (strcmp(collective, name) == 0)
#define ONE in, blocks[me], type, out, blocks[0], type, comm
#define EACH in, blocks[me], type, out, blocks, places, type, comm
#if MPI_VERSION < 4
#define ONE_LARGE ONE
#define EACH_LARGE EACH
#else
#define ONE_LARGE in, wide[me], type, out, wide[0], type, comm
#define EACH_LARGE in, wide[me], type, out, wide, wide_places, type, comm
#endif
  if (IS("Allgather")) return large ? MPI_Allgather_c(ONE_LARGE) : MPI_Allgather(ONE);
  if (IS("Allgatherv")) return large ? MPI_Allgatherv_c(EACH_LARGE) : MPI_Allgatherv(EACH);
  if (IS("Iallgather"))
    code = large ? MPI_Iallgather_c(ONE_LARGE, &request) : MPI_Iallgather(ONE, &request);
  else if (IS("Iallgatherv"))
    code = large ? MPI_Iallgatherv_c(EACH_LARGE, &request) : MPI_Iallgatherv(EACH, &request);
#if HAS_PERSISTENT_SUMS
  else if (IS("Allgather_init"))
    code = large ? MPI_Allgather_init_c(ONE_LARGE, MPI_INFO_NULL, &request)
                 : MPI_Allgather_init(ONE, MPI_INFO_NULL, &request);
  else if (IS("Allgatherv_init"))
    code = large ? MPI_Allgatherv_init_c(EACH_LARGE, MPI_INFO_NULL, &request)
                 : MPI_Allgatherv_init(EACH, MPI_INFO_NULL, &request);
#endif
#undef ONE
#undef ONE_LARGE
#undef EACH
#undef EACH_LARGE
#undef IS
  (void)wide, (void)wide_places;
  return code == MPI_SUCCESS ? complete(collective, &request) : code;
}

/* Makes the sum and returns MPI's code. `large`: by the function for large counts. */
static inline int sum_elements(const char* collective, const void* in, void* out, long count,
                               const int* blocks, int large, MPI_Datatype type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Count wide[MOST_RANKS];
  int rank, ranks, code = MPI_ERR_OTHER;
  if (names_gather(collective))
    return gather_elements(collective, in, out, blocks, 0, large, type, comm);
  MPI_Comm_size(comm, &ranks);
  for (rank = 0; blocks != NULL && rank < ranks; ++rank) wide[rank] = blocks[rank];
#define IS(name) (strcmp(collective, name) == 0)
#define TAIL type, MPI_SUM, comm
  if (IS("Allreduce"))
    return large ? MPI_Allreduce_c(in, out, count, TAIL) : MPI_Allreduce(in, out, (int)count, TAIL);
  if (IS("Reduce_scatter_block"))
    return large ? MPI_Reduce_scatter_block_c(in, out, wide[0], TAIL)
                 : MPI_Reduce_scatter_block(in, out, blocks[0], TAIL);
  if (IS("Reduce_scatter"))
    return large ? MPI_Reduce_scatter_c(in, out, wide, TAIL)
                 : MPI_Reduce_scatter(in, out, blocks, TAIL);
  if (IS("Iallreduce"))
    code = MPI_Iallreduce(in, out, (int)count, TAIL, &request);
  else if (IS("Ireduce_scatter_block"))
    code = large ? MPI_Ireduce_scatter_block_c(in, out, wide[0], TAIL, &request)
                 : MPI_Ireduce_scatter_block(in, out, blocks[0], TAIL, &request);
  else if (IS("Ireduce_scatter"))
    code = large ? MPI_Ireduce_scatter_c(in, out, wide, TAIL, &request)
                 : MPI_Ireduce_scatter(in, out, blocks, TAIL, &request);
#if HAS_PERSISTENT_SUMS
  else if (IS("Allreduce_init"))
    code = MPI_Allreduce_init(in, out, (int)count, TAIL, MPI_INFO_NULL, &request);
  else if (IS("Reduce_scatter_block_init"))
    code = large ? MPI_Reduce_scatter_block_init_c(in, out, wide[0], TAIL, MPI_INFO_NULL, &request)
                 : MPI_Reduce_scatter_block_init(in, out, blocks[0], TAIL, MPI_INFO_NULL, &request);
  else if (IS("Reduce_scatter_init"))
    code = large ? MPI_Reduce_scatter_init_c(in, out, wide, TAIL, MPI_INFO_NULL, &request)
                 : MPI_Reduce_scatter_init(in, out, blocks, TAIL, MPI_INFO_NULL, &request);
#endif
#undef TAIL
#undef IS
  return code == MPI_SUCCESS ? complete(collective, &request) : code;
}

static inline int sum_floats(const char* collective, const void* in, void* out, long count,
                             const int* blocks, int large, MPI_Comm comm) {
  return sum_elements(collective, in, out, count, blocks, large, MPI_FLOAT, comm);
}
