// SPDX-License-Identifier: BSD-3-Clause
// waiting ROUNDS KILOBYTES: what a sum of that size takes by MPI itself and by slimpi, call by call
// in turns, for a machine whose cores have other work as well. Set SLIMPI_INTRA=shm on one node, so
// that every call is slimpi's own.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostRounds = 1000, kCalls = 8, kMostTimes = kMostRounds * kCalls };
static double times[2][kMostTimes];
static int samples[2];

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Seconds of one call, of the slowest rank.
static double sum(int own, const float* in, float* out, int count, MPI_Comm comm) {
  double mine, all;
  PMPI_Barrier(comm);
  const double begin = MPI_Wtime();
  (own ? MPI_Allreduce : PMPI_Allreduce)(in, out, count, MPI_FLOAT, MPI_SUM, comm);
  mine = MPI_Wtime() - begin;
  PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm);
  return all;
}

static void round_of_calls(const float* in, float* out, int count, int kept) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int call = 0; call < kCalls; ++call) {
    const double plain = sum(0, in, out, count, comm), own = sum(1, in, out, count, comm);
    if (!kept || call < 2) continue;
    times[0][samples[0]++] = plain;
    times[1][samples[1]++] = own;
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = argc == 3 ? atoi(argv[1]) : 0, kilobytes = argc == 3 ? atoi(argv[2]) : 0;
  if (rounds < 1 || rounds > kMostRounds || kilobytes < 64 || kilobytes > 1 << 20) {
    fprintf(stderr, "usage: waiting ROUNDS KILOBYTES; up to %d, and 64 to %d\n", kMostRounds,
            1 << 20);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int count = kilobytes * 256;
  float* const in = malloc((size_t)count * sizeof(float));
  float* const out = malloc((size_t)count * sizeof(float));
  if (in == NULL || out == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < count; ++i) in[i] = (float)(i * 7 % 1000) / 1024 + (float)rank;
  for (int round = 0; round <= rounds; ++round) round_of_calls(in, out, count, round > 0);
  if (rank == 0) printf("          median us  worst tenth from\n");
  for (int own = 0; own < 2 && rank == 0; ++own) {
    qsort(times[own], (size_t)samples[own], sizeof(double), by_size);
    printf("%-8s %10.0f %17.0f\n", own ? "slimpi" : "MPI", 1e6 * times[own][samples[own] / 2],
           1e6 * times[own][samples[own] * 9 / 10]);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
