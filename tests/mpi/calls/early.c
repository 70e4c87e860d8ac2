/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of slimpi.h and of MPI at times when MPI takes none. Built with -DLATE it is not linked to
 * MPI: MPI is loaded as argv[2], hidden from others, and used by argv[3], which is this file built
 * with -DPART.
 *   early api [MPI PART]   slimpi.h before MPI_Init, between, and after MPI_Finalize
 *   early before CALL      an MPI function before MPI_Init, which is MPI's to refuse
 *   early after CALL       and after MPI_Finalize */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "slimpi.h"

enum { kCount = 100, kRows = 50, kColumns = 2 };

int sum(void);

#ifndef LATE
#include <mpi.h>

static float value(int i, int rank) {
  return (float)((i * 7 + rank * 13) % 101);
}

/* Sums a matrix and returns 0 if the sum was exact. As a square, the matrix has a rank of more than
 * 1. With its shape, the sum is exact because a low-rank sum would save nothing. */
int sum(void) {
  float x[kCount];
  int rank, size, bad = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < kCount; ++i) x[i] = value(i, rank);
  bad |= MPI_Allreduce(MPI_IN_PLACE, x, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) {
    float exact = 0;
    for (int r = 0; r < size; ++r) exact += value(i, r);
    bad |= x[i] != exact;
  }
  bad |= MPI_Pcontrol(1);
  MPI_Finalize();
  return bad;
}
#endif

#ifndef PART
static int failures;

static void check(int good, const char* what) {
  if (!good) printf("FAILED: %s\n", what);
  failures += !good;
}

static uint64_t compressed(int* code) {
  int (*get)(struct slimpi_statistics_t*) = NULL;
  struct slimpi_statistics_t statistics = {sizeof statistics, 99, 99, 99, 99, 99};
  *(void**)&get = dlsym(RTLD_DEFAULT, "slimpi_get_statistics");
  *code = get(&statistics);
  return *code == 0 ? statistics.compressed : 0;
}

static void api(int argc, char** argv) {
  static const slimpi_matrix_t matrices[] = {{kRows, kColumns}, {0, kColumns}};
  const slimpi_tensor_t fits = {sizeof fits, NULL, &matrices[0], 1};
  const slimpi_tensor_t empty = {sizeof empty, NULL, &matrices[1], 1};
  int (*set)(const slimpi_tensor_t*) = NULL;
  void (*finish)(void) = NULL;
  int (*run)(void) = NULL;
  int code;
  *(void**)&set = dlsym(RTLD_DEFAULT, "slimpi_describe_next");
  *(void**)&finish = dlsym(RTLD_DEFAULT, "slimpi_finish");
  finish(); /* the first call, before any other has looked for MPI */
  check(set(&fits) == 0, "a shape before MPI_Init");
  check(set(&empty) == 1, "a matrix without elements");
  check(compressed(&code) == 0, "no sum yet");
#ifdef LATE
  int (*pcontrol)(int, ...) = NULL;
  check(code == 1, "slimpi_get_statistics without MPI");
  *(void**)&pcontrol = dlsym(RTLD_DEFAULT, "MPI_Pcontrol");
  check(pcontrol(1) != 0, "MPI_Pcontrol without MPI");
#else
  check(code == 0, "slimpi_get_statistics before MPI_Init");
#endif
  finish();
#ifdef LATE
  void* mpi = argc > 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
  void* part = mpi != NULL ? dlopen(argv[3], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (part != NULL) *(void**)&run = dlsym(part, "sum");
#else
  (void)argc, (void)argv;
  run = sum;
#endif
  check(run != NULL && run() == 0, "the shape named before MPI_Init holds");
  check(compressed(&code) == 1, "the statistics can be read after MPI_Finalize");
  check(set(&fits) == 0, "a shape after MPI_Finalize");
  finish();
}

#ifndef LATE
static void call(const char* name) {
  float x[kCount] = {0};
  MPI_Request request;
  if (strcmp(name, "allreduce") == 0)
    MPI_Allreduce(MPI_IN_PLACE, x, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(name, "iallreduce") == 0)
    MPI_Iallreduce(MPI_IN_PLACE, x, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  else if (strcmp(name, "set_info") == 0)
    MPI_Comm_set_info(MPI_COMM_WORLD, MPI_INFO_NULL);
  else
    MPI_Pcontrol(name[0] - '0');
}
#endif

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "api") == 0) api(argc, argv);
#ifndef LATE
  if (argc > 2 && strcmp(argv[1], "before") == 0) call(argv[2]);
  if (argc > 2 && strcmp(argv[1], "after") == 0) {
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    call(argv[2]);
  }
#endif
  return failures != 0;
}
#endif
