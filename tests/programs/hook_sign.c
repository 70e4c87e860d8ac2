/* SPDX-License-Identifier: BSD-3-Clause */
/* A strategy for slimpi's hooks: every rank sends one bit a value, its sign, and the mean size of
 * its values. Each element of the result is the sum of the ranks' means with the sign that most
 * ranks have; where they tie it is 0. Written with plain MPI calls. */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "slimpi.h"

/* Kept for one communicator: memory for the signs of all ranks, and for this rank's. */
struct state {
  unsigned char *all, *mine;
  uint64_t room;
};

static int open_state(const struct slimpi_hook_call_t* call, void** context) {
  (void)call;
  *context = calloc(1, sizeof(struct state));
  return *context == NULL;
}

static void close_state(void* context) {
  struct state* const state = context;
  free(state->all);
  free(state->mine);
  free(state);
}

/* All that can fail on one rank alone happens here. */
static int prepare(void* context, const struct slimpi_hook_call_t* call) {
  struct state* const state = context;
  const uint64_t bytes = (call->count + 7) / 8;
  if (bytes > INT32_MAX) {
    strcpy(call->reason, "more than 2^34 values");
    return 1;
  }
  if (bytes <= state->room) return 0;
  unsigned char* const all = realloc(state->all, bytes * (uint64_t)call->ranks);
  if (all != NULL) state->all = all;
  unsigned char* const mine = realloc(state->mine, bytes);
  if (mine != NULL) state->mine = mine;
  if (all == NULL || mine == NULL) return 2;
  state->room = bytes;
  return 0;
}

static int allreduce(void* context, const struct slimpi_hook_call_t* call, const float* in,
                     float* out) {
  struct state* const state = context;
  const MPI_Comm comm = *(const MPI_Comm*)call->comm;
  const uint64_t bytes = (call->count + 7) / 8;
  double size = 0;
  memset(state->mine, 0, bytes);
  for (uint64_t i = 0; i < call->count; ++i) {
    size += fabs(in[i]);
    if (in[i] < 0) state->mine[i / 8] |= (unsigned char)(1 << i % 8);
  }
  float mean = (float)(size / (double)call->count);
  if (MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_FLOAT, MPI_SUM, comm) != MPI_SUCCESS) return 1;
  if (MPI_Allgather(state->mine, (int)bytes, MPI_BYTE, state->all, (int)bytes, MPI_BYTE, comm) !=
      MPI_SUCCESS)
    return 2;
  for (uint64_t i = 0; i < call->count; ++i) {
    int votes = 0;
    for (int rank = 0; rank < call->ranks; ++rank)
      votes += state->all[(uint64_t)rank * bytes + i / 8] >> i % 8 & 1 ? -1 : 1;
    out[i] = votes == 0 ? 0 : votes > 0 ? mean : -mean;
  }
  *call->sent += bytes;
  return 0;
}

const struct slimpi_hook_t slimpi_hook = {
    .abi = SLIMPI_HOOK_ABI,
    .size = sizeof(struct slimpi_hook_t),
    .kind = SLIMPI_HOOK_STRATEGY,
    .name = "sign majority 1",
    .open = open_state,
    .close = close_state,
    .prepare = prepare,
    .allreduce = allreduce,
};
