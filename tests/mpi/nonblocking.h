// SPDX-License-Identifier: BSD-3-Clause
// What nonblocking.c and nonblocking_errors.c share: inputs, the sums of the blocking calls, and
// how nonblocking ones begin and are compared with them.
#pragma once
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helper/mpi4.h"

enum { kCount = 40000, kMany = 6 };

static int g_rank, g_size;
static float *g_in[kMany], *g_blocking[kMany], *g_out[kMany];

static void check(int good, const char* what) {
  if (good) return;
  printf("FAIL rank %d: %s\n", g_rank, what);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(void) {
  for (int i = 0; i < kMany; ++i) {
    g_in[i] = malloc(kCount * sizeof(float));
    g_blocking[i] = malloc(kCount * sizeof(float));
    g_out[i] = malloc(kCount * sizeof(float));
    for (int j = 0; j < kCount; ++j)
      // The sum is exact, in whatever order MPI adds.
      g_in[i][j] = (float)((j * (7 + i) + g_rank * 31) % 1000) / 256 - 2;
  }
}

static void blocking(MPI_Comm comm) {
  for (int i = 0; i < kMany; ++i)
    MPI_Allreduce(g_in[i], g_blocking[i], kCount, MPI_FLOAT, MPI_SUM, comm);
}

static void begin(MPI_Comm comm, int i, MPI_Request* request) {
  memset(g_out[i], 0, kCount * sizeof(float));
  MPI_Iallreduce(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, comm, request);
}

static inline void begin_all(MPI_Comm comm, MPI_Request* requests) {
  for (int i = 0; i < kMany; ++i) begin(comm, i, &requests[i]);
}

static inline void same(const char* what) {
  for (int i = 0; i < kMany; ++i)
    check(memcmp(g_out[i], g_blocking[i], kCount * sizeof(float)) == 0, what);
}
