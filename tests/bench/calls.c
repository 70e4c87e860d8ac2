/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures how much more a call that slimpi passes on costs than MPI's own call. The program makes
 * the same calls by their MPI_ names, which slimpi intercepts when it is preloaded, and by their
 * PMPI_ names, which slimpi never intercepts. Blocks of both kinds take turns, and so does the
 * first of a pair: other work of the machine falls on both. Prints the medians of the blocks.
 * calls.sh says how to run the program. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kBlocks = 601, kCalls = 2000, kMost = 4096 };
static int rank;
static float in[kMost], out[kMost];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

typedef int Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

/* Nanoseconds of a call. */
static double block(Allreduce* call, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    int calls) {
  const double start = now();
  for (int i = 0; i < calls; ++i) call(in, out, n, type, op, comm);
  return (now() - start) / calls;
}

static void measure(const char* what, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static double direct[kBlocks], through[kBlocks], more[kBlocks];
  int size;
  MPI_Comm_size(comm, &size);
  const int calls = size == 1 ? kCalls : kCalls / 10;
  for (int b = 0; b < kBlocks; ++b) {
    if (b % 2) direct[b] = block(PMPI_Allreduce, n, type, op, comm, calls);
    through[b] = block(MPI_Allreduce, n, type, op, comm, calls);
    if (b % 2 == 0) direct[b] = block(PMPI_Allreduce, n, type, op, comm, calls);
    more[b] = through[b] - direct[b];
  }
  qsort(direct, kBlocks, sizeof *direct, ascending);
  qsort(through, kBlocks, sizeof *through, ascending);
  qsort(more, kBlocks, sizeof *more, ascending);
  if (rank == 0)
    printf("%-42s %5d %9.1f %9.1f %9.1f %6.2f\n", what, size, direct[kBlocks / 2],
           through[kBlocks / 2], more[kBlocks / 2], through[kBlocks / 2] / direct[kBlocks / 2]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Comm dup, others[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    printf("%-42s %5s %9s %9s %9s %6s\n", "call", "ranks", "PMPI ns", "MPI ns", "more ns", "ratio");
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  measure("1 MPI_INT, MPI_MAX", 1, MPI_INT, MPI_MAX, MPI_COMM_SELF);
  measure("100 MPI_DOUBLE, MPI_SUM", 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
  measure("1 MPI_FLOAT, MPI_MAX", 1, MPI_FLOAT, MPI_MAX, MPI_COMM_SELF);
  measure("1 MPI_FLOAT, MPI_SUM", 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  measure("1 MPI_FLOAT, MPI_SUM, a duplicate", 1, MPI_FLOAT, MPI_SUM, dup);
  measure("4096 MPI_FLOAT, MPI_SUM", kMost, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  /* A communicator that comes and goes makes every thread look its own up again. */
  for (int i = 0; i < 64; ++i) MPI_Comm_dup(MPI_COMM_SELF, &others[i]);
  for (int i = 0; i < 64; ++i) MPI_Comm_free(&others[i]);
  measure("1 MPI_FLOAT, MPI_SUM, after 64 came and went", 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) {
    measure("1 MPI_INT, MPI_MAX", 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    measure("1 MPI_FLOAT, MPI_SUM", 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    measure("1024 MPI_FLOAT, MPI_SUM", 1024, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&dup);
  MPI_Finalize();
  return 0;
}
