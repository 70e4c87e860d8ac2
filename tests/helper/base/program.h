/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the MPI programs of tests: headers, ranks, checks, and the begin and end of MPI. The
 * exit status is 1 on every rank if a check has failed on any rank. A program includes this header
 * first. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>
#ifdef __cplusplus
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>
#else
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif

#include "slimpi.h"

/* Rank and size in MPI_COMM_WORLD, and the number of checks that failed on this rank. */
__attribute__((unused)) static int g_rank, g_size, g_failures;

static inline void find_ranks(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
}

static inline void begin_mpi(void) {
  MPI_Init(NULL, NULL);
  find_ranks();
}

/* Initializes MPI with this level of threads, and returns the level that MPI provides. */
static inline int begin_mpi_with(int level) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(NULL, NULL, level, &provided);
  find_ranks();
  return provided;
}

/* Counts a failure if `good` is 0, and prints the first five failures. */
static inline void check(int good, const char* what) {
  if (!good && ++g_failures <= 5) fprintf(stderr, "rank %d: FAIL %s\n", g_rank, what);
}

/* Ends the job if `good` is 0. */
static inline void must(int good, const char* what) {
  if (good) return;
  printf("FAIL rank %d: %s\n", g_rank, what);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Ends the program, with the greatest status of all ranks, unless that is 0. */
static inline void exit_unless_0(int status) {
  int all = 0;
  PMPI_Allreduce(&status, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (all == 0) return;
  MPI_Finalize();
  exit(all);
}

/* Returns how many checks have failed on all ranks together. */
static inline int all_failures(void) {
  int all = 0;
  PMPI_Allreduce(&g_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* Ends MPI and returns the exit status. */
static inline int end_mpi(void) {
  const int failures = all_failures();
  MPI_Finalize();
  return failures != 0;
}

/* Writes whole numbers that depend on the rank and the seed. */
static inline void fill_whole(float* x, int count, int seed, int rank) {
  for (int i = 0; i < count; ++i) x[i] = (float)((i + seed) % 50 + rank);
}

/* Returns the greatest error of an element in a sum of these numbers over `ranks` ranks. */
static inline double error_of_whole(const float* x, int count, int seed, int ranks) {
  double error = 0;
  for (int i = 0; i < count; ++i) {
    const double off = fabs(x[i] - (ranks * ((i + seed) % 50) + ranks * (ranks - 1) / 2.0));
    if (!(off <= error)) error = off;
  }
  return error;
}

/* Sums these numbers in place. Returns the greatest error of an element, or infinity if MPI
 * returned an error. */
static inline double error_of_sum(MPI_Comm comm, int count, int seed) {
  int rank, size;
  float* const x = (float*)malloc((size_t)count * sizeof *x);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  fill_whole(x, count, seed, rank);
  const int code = MPI_Allreduce(MPI_IN_PLACE, x, count, MPI_FLOAT, MPI_SUM, comm);
  const double error = code == MPI_SUCCESS ? error_of_whole(x, count, seed, size) : INFINITY;
  free(x);
  return error;
}

/* Returns the text of an error of MPI on one line; "" for success. The text is valid until the
 * thread's next call. */
static inline const char* error_text(int code) {
  static __thread char text[MPI_MAX_ERROR_STRING + 1];
  int length = 0;
  text[0] = '\0';
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  for (char* c = text; *c != '\0'; ++c)
    if (*c == '\n') *c = ' ';
  return text;
}

/* Returns whether all ranks have the same bytes as rank 0. */
static inline int has_rank_0_s(const void* data, size_t bytes) {
  void* const first = malloc(bytes + 1);
  memcpy(first, data, bytes);
  PMPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  const int same = memcmp(first, data, bytes) == 0;
  free(first);
  return same;
}

/* Returns the FNV-1a digest of the data. `digest` is the digest of the data before these, or
 * kDigest if there are none. */
#define kDigest UINT64_C(14695981039346656037)
static inline uint64_t digest_of(const void* data, size_t bytes, uint64_t digest) {
  for (size_t i = 0; i < bytes; ++i)
    digest = (digest ^ ((const unsigned char*)data)[i]) * 1099511628211u;
  return digest;
}

/* Returns the number of calls that slimpi has compressed on this rank; 0 without slimpi. */
static inline uint64_t compressed_calls(void) {
  int (*get)(struct slimpi_statistics_t*) = NULL;
  struct slimpi_statistics_t statistics;
  memset(&statistics, 0, sizeof statistics);
  statistics.size = sizeof statistics;
  *(void**)&get = dlsym(RTLD_DEFAULT, "slimpi_get_statistics");
  return get != NULL && get(&statistics) == 0 ? statistics.compressed : 0;
}
