// SPDX-License-Identifier: BSD-3-Clause
// waiting ROUNDS KILOBYTES [PID...]: what a sum of that size takes by MPI itself and by slimpi,
// call by call in turns, while the processes PID are stopped, and while they run; these states take
// turns, too. The times are sorted by whether the cores of ranks 0 and 1 shared a cache meanwhile,
// because a virtual machine changes that from second to second. Set SLIMPI_INTRA=shm on one node,
// so that every call is slimpi's own.
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "tests/bench/placement.h"

enum { kMostRounds = 1000, kCalls = 8, kFirstKept = 2, kMostTimes = kMostRounds * kCalls };
enum { kWays = 2, kLoads = 2, kCaches = 2 };
static double times[kLoads][kCaches][kWays][kMostTimes];
static int samples[kLoads][kCaches];
static atomic_int* word;
static int rank, ranks;

// Whether a word takes long from the core of rank 0 to that of rank 1 and back. More than two ranks
// may share cores: then nothing is measured.
static int two_caches(void) {
  if (ranks != 2) return 0;
  return round_trip(word, rank) > kFar;
}

// Seconds of one call, of the slowest rank.
static double sum(int own, const float* in, float* out, int count, MPI_Comm comm) {
  PMPI_Barrier(comm);
  const double begin = MPI_Wtime();
  (own ? MPI_Allreduce : PMPI_Allreduce)(in, out, count, MPI_FLOAT, MPI_SUM, comm);
  return worst(MPI_Wtime() - begin);
}

// A round in which the cores began or ceased to share a cache does not count.
static void round_of_calls(const float* in, float* out, int count, int load) {
  double seen[kWays][kCalls];
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int caches = two_caches();
  for (int call = 0; call < kCalls; ++call)
    for (int own = 0; own < kWays; ++own) seen[own][call] = sum(own, in, out, count, comm);
  if (two_caches() == caches)
    for (int call = kFirstKept; call < kCalls; ++call) {
      const int at = samples[load][caches]++;
      for (int own = 0; own < kWays; ++own) times[load][caches][own][at] = seen[own][call];
    }
  MPI_Comm_free(&comm);
}

static void signal_all(int processes, char** pids, int number) {
  for (int i = 0; i < processes && rank == 0; ++i) kill((pid_t)atoi(pids[i]), number);
}

static void print(void) {
  static const char* const loads[] = {"alone", "beside the processes"};
  static const char* const caches[] = {"one cache", "two caches"};
  printf(
      "                                 MPI us           slimpi us\n"
      "                                 median  tenth    median  tenth  samples\n");
  for (int cache = 0; cache < kCaches; ++cache)
    for (int load = 0; load < kLoads; ++load) {
      const int taken = samples[load][cache];
      if (taken == 0) continue;
      printf("%-10s %-20s", caches[cache], loads[load]);
      for (int own = 0; own < kWays; ++own) {
        double* const all = times[load][cache][own];
        qsort(all, (size_t)taken, sizeof(double), by_size);
        printf(" %7.0f %6.0f  ", 1e6 * all[taken / 2], 1e6 * all[taken * 9 / 10]);
      }
      printf(" %6d\n", taken);
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc > 2 ? atoi(argv[1]) : 0, kilobytes = argc > 2 ? atoi(argv[2]) : 0;
  if (rounds < 1 || rounds > kMostRounds || kilobytes < 64 || kilobytes > 1 << 20) {
    fprintf(stderr, "usage: waiting ROUNDS KILOBYTES [PID...]; up to %d, and 64 to %d\n",
            kMostRounds, 1 << 20);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int count = kilobytes * 256, processes = argc - 3;
  float* const in = malloc((size_t)count * sizeof(float));
  float* const out = malloc((size_t)count * sizeof(float));
  if (in == NULL || out == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < count; ++i) in[i] = (float)(i * 7 % 1000) / 1024 + (float)rank;
  MPI_Win window;
  MPI_Aint bytes = rank == 0 ? 64 : 0;
  int unit;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
  MPI_Win_shared_query(window, 0, &bytes, &unit, &word);
  if (rank == 0) atomic_store(word, 0);
  for (int round = 0; round < rounds; ++round)
    for (int load = 0; load < (processes > 0 ? kLoads : 1); ++load) {
      signal_all(processes, argv + 3, load == 1 ? SIGCONT : SIGSTOP);
      round_of_calls(in, out, count, load);
    }
  signal_all(processes, argv + 3, SIGCONT);
  if (rank == 0) print();
  MPI_Win_free(&window);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
