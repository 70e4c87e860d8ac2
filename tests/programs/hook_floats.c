/* SPDX-License-Identifier: BSD-3-Clause */
/* The least that a hook can be, for tests that want exact sums: a codec that copies its floats, or
 * with -DSTRATEGY a strategy that leaves all to MPI. */
#include <mpi.h>
#include <string.h>

#include "slimpi.h"

#ifdef STRATEGY
static int allreduce(void* context, const struct slimpi_hook_call_t* call, const float* in,
                     float* out) {
  (void)context;
  return MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, (int)call->count, MPI_FLOAT, MPI_SUM,
                       *(const MPI_Comm*)call->comm);
}
#else
static uint64_t bound(void* context, uint64_t count) {
  (void)context;
  return count * sizeof(float);
}

static int encode(void* context, const struct slimpi_hook_call_t* call, const float* in,
                  uint64_t count, void* out, uint64_t capacity, uint64_t* bytes) {
  (void)context;
  (void)call;
  *bytes = count * sizeof(float);
  if (*bytes > capacity) return 1;
  memcpy(out, in, *bytes);
  return 0;
}

static int decode(void* context, const struct slimpi_hook_call_t* call, const void* in,
                  uint64_t bytes, float* out, uint64_t count) {
  (void)context;
  (void)call;
  if (bytes != count * sizeof(float)) return 1;
  memcpy(out, in, bytes);
  return 0;
}
#endif

const struct slimpi_hook_t slimpi_hook = {
    .abi = SLIMPI_HOOK_ABI,
    .size = sizeof(struct slimpi_hook_t),
    .name = "floats 1",
#ifdef STRATEGY
    .kind = SLIMPI_HOOK_STRATEGY,
    .allreduce = allreduce,
#else
    .kind = SLIMPI_HOOK_CODEC,
    .bound = bound,
    .encode = encode,
    .decode = decode,
#endif
};
