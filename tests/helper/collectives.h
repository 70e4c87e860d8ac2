/* SPDX-License-Identifier: BSD-3-Clause */
/* One sum of floats by any of the collectives that slimpi takes, in any of their
 * forms, named as MPI does: Allreduce, Iallreduce, Allreduce_init, Reduce_scatter_block,
 * Ireduce_scatter, ... The blocks of a Reduce_scatter differ, and some are empty. */
#pragma once
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helper/mpi4.h"

enum { MOST_RANKS = 64 };

static inline int names_blocks(const char* collective) {
  return strstr(collective, "educe_scatter") != NULL;
}
static inline int names_equal_blocks(const char* collective) {
  return strstr(collective, "educe_scatter_block") != NULL;
}

/* Divides about `count` elements among the ranks: writes the block of each rank, and returns the
 * sum of the blocks. */
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

/* Makes the sum and returns MPI's code. `large`: by the function for large counts. */
static inline int sum_elements(const char* collective, const void* in, void* out, long count,
                               const int* blocks, int large, MPI_Datatype type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Count wide[MOST_RANKS];
  int rank, ranks, code = MPI_ERR_OTHER;
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
  if (strstr(collective, "_init") != NULL && code == MPI_SUCCESS) {
    code = MPI_Start(&request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return code;
  }
#endif
#undef TAIL
#undef IS
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static inline int sum_floats(const char* collective, const void* in, void* out, long count,
                             const int* blocks, int large, MPI_Comm comm) {
  return sum_elements(collective, in, out, count, blocks, large, MPI_FLOAT, comm);
}
