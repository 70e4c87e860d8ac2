// SPDX-License-Identifier: BSD-3-Clause
// Shared by the programs that test nonblocking sums: inputs, the results of blocking calls, the
// start of nonblocking sums, the ways to complete them, and the comparison with the blocking
// results. With SLIMPI_TEST_PROTECTED the buffers of nonblocking sums are in the protected device's
// memory.
#pragma once
#include "tests/helper/base/program.h"

#include "tests/helper/mpi/mpi4.h"
#ifdef SLIMPI_TEST_PROTECTED
#include "tests/helper/devices/protected_device.h"
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
      // With these values the sum is exact, in whatever order MPI adds.
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

// The ways to complete requests. From WAITALL on, they report the error of each request.
enum way { WAIT, TEST, WAITANY, TESTANY, WAITALL, TESTALL, WAITSOME, TESTSOME, WAYS };
static const char* const kWayNames[WAYS] = {"Wait",    "Test",    "Waitany",  "Testany",
                                            "Waitall", "Testall", "Waitsome", "Testsome"};

// Completes `count` requests, some of which may be null. Each request that is not null gets a
// status, unless `s` is null. Returns MPI_SUCCESS, or the code of the last call that failed.
static inline int complete(enum way way, int count, MPI_Request* r, MPI_Status* s) {
  int left = 0, next = 0, code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) left += r[i] != MPI_REQUEST_NULL;
  if (s != NULL) memset(s, -1, (size_t)count * sizeof *s);
  while (left > 0) {
    int flag = 1, found = 1, indices[kMany], one = MPI_SUCCESS;
    MPI_Status some[kMany], *const first = s == NULL ? MPI_STATUS_IGNORE : some;
    MPI_Status* const all = s == NULL ? MPI_STATUSES_IGNORE : some;
    while (way <= TEST && r[next] == MPI_REQUEST_NULL) ++next;
    memset(some, -1, sizeof some);
    indices[0] = next;
    if (way == WAIT) one = MPI_Wait(&r[next], first);
    if (way == TEST) one = MPI_Test(&r[next], &flag, first);
    if (way == WAITANY) one = MPI_Waitany(count, r, indices, first);
    if (way == TESTANY) one = MPI_Testany(count, r, indices, &flag, first);
    if (way == WAITALL) one = MPI_Waitall(count, r, s == NULL ? all : s);
    if (way == TESTALL) one = MPI_Testall(count, r, &flag, s == NULL ? all : s);
    if (way == WAITSOME) one = MPI_Waitsome(count, r, &found, indices, all);
    if (way == TESTSOME) one = MPI_Testsome(count, r, &found, indices, all);
    if (way == WAITALL || way == TESTALL) found = left;
    if (!flag) continue;
    must(found >= (way != TESTSOME), kWayNames[way]);
    for (int i = 0; i < found && way != WAITALL && way != TESTALL; ++i) {
      must(indices[i] >= 0 && indices[i] < count, kWayNames[way]);
      if (s == NULL) continue;
      s[indices[i]] = some[i];
      if (one == MPI_SUCCESS) s[indices[i]].MPI_ERROR = MPI_SUCCESS;
    }
    if (one != MPI_SUCCESS) code = one;
    left -= found;
    ++next;
  }
  return code;
}
