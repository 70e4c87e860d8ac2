// SPDX-License-Identifier: BSD-3-Clause
// Parts that programs of nonblocking sums share: inputs, the sums of the blocking calls,
// the start of nonblocking sums, and their comparison with the blocking sums. With
// SLIMPI_TEST_PROTECTED the buffers of the nonblocking sums are the protected device's.
#pragma once
#include "tests/helper/program.h"

#include "tests/helper/mpi4.h"
#ifdef SLIMPI_TEST_PROTECTED
#include "tests/helper/protected_device.h"
#define take slimpi_protected_allocate
#define write_to slimpi_protected_write
#define read_from slimpi_protected_read
#else
#define take malloc
#define write_to memcpy
#define read_from memcpy
#endif

enum { kCount = 40000, kMany = 6 };

static float *g_in[kMany], *g_blocking[kMany], *g_out[kMany];
static float g_values[kCount];  // of one buffer

static void fill(void) {
  for (int i = 0; i < kMany; ++i) {
    g_in[i] = take(kCount * sizeof(float));
    g_blocking[i] = malloc(kCount * sizeof(float));
    g_out[i] = take(kCount * sizeof(float));
    for (int j = 0; j < kCount; ++j)
      // The sum is exact, in whatever order MPI adds.
      g_values[j] = (float)((j * (7 + i) + g_rank * 31) % 1000) / 256 - 2;
    write_to(g_in[i], g_values, sizeof g_values);
  }
}

static void blocking(MPI_Comm comm) {
  for (int i = 0; i < kMany; ++i)
    MPI_Allreduce(g_in[i], g_blocking[i], kCount, MPI_FLOAT, MPI_SUM, comm);
}

static inline void clear(int i) {
  memset(g_values, 0, sizeof g_values);
  write_to(g_out[i], g_values, sizeof g_values);
}

static inline void begin(MPI_Comm comm, int i, MPI_Request* request) {
  clear(i);
  MPI_Iallreduce(g_in[i], g_out[i], kCount, MPI_FLOAT, MPI_SUM, comm, request);
}

static inline void begin_all(MPI_Comm comm, MPI_Request* requests) {
  for (int i = 0; i < kMany; ++i) begin(comm, i, &requests[i]);
}

static inline void same_of(int i, const char* what) {
  read_from(g_values, g_out[i], sizeof g_values);
  must(memcmp(g_values, g_blocking[i], sizeof g_values) == 0, what);
}

static inline void same(const char* what) {
  for (int i = 0; i < kMany; ++i) same_of(i, what);
}
