// SPDX-License-Identifier: BSD-3-Clause
// sum_and_read KILOBYTES...: a loop as in training. It writes a buffer, sums it, and reads the sum
// to change a third array. Prints the medians, of the slowest rank, of the sum alone and of the sum
// with the reading, by MPI's own sum and by slimpi's, interleaved: a store that does not leave its
// value in the caches makes the first faster and the second slower. In place with INPLACE in the
// environment. Wants the preload.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWays = 2, kParts = 2, kMost = 300, kWarmUp = 40 };

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(int kilobytes, int in_place, int rank) {
  static double times[kWays][kParts][kMost];
  const size_t bytes = (size_t)kilobytes << 10;
  const int count = (int)(bytes / sizeof(float));
  const int calls = kilobytes > 16384 ? 15 : kilobytes > 1024 ? 60 : kMost;
  float *const in = malloc(bytes), *const other = malloc(bytes), *const weights = malloc(bytes);
  if (in == NULL || other == NULL || weights == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  float* const out = in_place ? in : other;
  memset(other, 0, bytes);
  for (int i = 0; i < count; ++i) weights[i] = (float)(i % 7);
  for (int call = -kWarmUp; call < calls; ++call) {
    for (int way = 0; way < kWays; ++way) {
      for (int i = 0; i < count; ++i) in[i] = weights[i] * 0.25f + 1;
      PMPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      (way == 0 ? PMPI_Allreduce : MPI_Allreduce)(in_place ? MPI_IN_PLACE : in, out, count,
                                                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      const double summed = MPI_Wtime() - begin;
      for (int i = 0; i < count; ++i) weights[i] -= 1e-3f * out[i];
      const double mine[kParts] = {summed, MPI_Wtime() - begin};
      double slowest[kParts];
      PMPI_Allreduce(mine, slowest, kParts, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      for (int part = 0; part < kParts && call >= 0; ++part)
        times[way][part][call] = 1e6 * slowest[part];
    }
  }
  double median[kWays][kParts];
  for (int way = 0; way < kWays; ++way) {
    for (int part = 0; part < kParts; ++part) {
      qsort(times[way][part], (size_t)calls, sizeof(double), by_size);
      median[way][part] = times[way][part][calls / 2];
    }
  }
  if (rank == 0) {
    printf("%9d", kilobytes);
    for (int part = 0; part < kParts; ++part)
      printf(" %10.1f %10.1f %9.2f", median[0][part], median[1][part],
             median[0][part] / median[1][part]);
    printf("\n");
    fflush(stdout);
  }
  free(in);
  free(other);
  free(weights);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    printf("%9s %10s %10s %9s %10s %10s %9s   microseconds\n", "KiB", "MPI", "slimpi", "speed-up",
           "and read", "and read", "speed-up");
  for (int i = 1; i < argc; ++i) measure(atoi(argv[i]), getenv("INPLACE") != NULL, rank);
  MPI_Finalize();
  return 0;
}
