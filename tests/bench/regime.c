// SPDX-License-Identifier: BSD-3-Clause
// regime FILE ROUNDS KILOBYTES...: two ranks add vectors of these sizes with MPI's own sum and with
// slimpi's, in turns, and say what either took by the regime that the machine had meanwhile:
// whether their cores shared a cache, found by handing a word in FILE, which both map, back and
// forth, and whether both had their cores for themselves, found by arithmetic. In virtual machines
// both change from second to second.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/placement.h"

enum { kMostSizes = 16, kWays = 2, kRegimes = 4, kMost = 1000 };
enum { kMostKilobytes = 4 << 20 };  // fewer floats than an int counts
enum { kChains = 24 };              // more than a core's units can begin while one is under way
static const char* const regimes[kRegimes] = {"one cache", "one cache, busy cores", "two caches",
                                              "two caches, busy cores"};
static const double kBusy = 1.4;  // times as slow as at best

static double times[kMostSizes][kWays][kRegimes][kMost];
static int samples[kMostSizes][kWays][kRegimes];
static atomic_int* word;
static int rank;

// Seconds of arithmetic that keeps a core's units busy, of the slower rank.
static double arithmetic(void) {
  double a[kChains] = {0}, all = 0;
  const double begin = MPI_Wtime();
  for (int i = 0; i < 30000; ++i)
    for (int j = 0; j < kChains; ++j) a[j] = a[j] * 0.999 + 0.5;
  const double spent = MPI_Wtime() - begin;
  for (int j = 0; j < kChains; ++j) all += a[j];
  return worst(all > 0 ? spent : 0);
}

static int regime(void) {
  static double best = 1e9;
  const double spent = arithmetic();
  if (spent < best) best = spent;
  return 2 * (round_trip(word, rank) > kFar) + (spent > kBusy * best);
}

static double sum(int way, const float* in, float* out, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i)
    (way == 0 ? PMPI_Allreduce : MPI_Allreduce)(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - begin) / calls;
}

static void print(int regime_seen, int sizes, char** kilobytes) {
  int any = 0;
  for (int size = 0; size < sizes; ++size) {
    double median[kWays] = {0, 0};
    for (int way = 0; way < kWays; ++way) {
      const int taken = samples[size][way][regime_seen];
      qsort(times[size][way][regime_seen], (size_t)taken, sizeof(double), by_size);
      if (taken != 0) median[way] = 1e6 * times[size][way][regime_seen][taken / 2];
    }
    if (median[0] == 0 || median[1] == 0) continue;
    if (!any++)
      printf("%s\n     size    MPI us  slimpi us  speed-up  samples\n", regimes[regime_seen]);
    printf("%8sK %9.1f %10.1f %9.2f  %d, %d\n", kilobytes[size], median[0], median[1],
           median[0] / median[1], samples[size][0][regime_seen], samples[size][1][regime_seen]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc > 2 ? atoi(argv[2]) : 0, sizes = argc - 3;
  const int file = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (ranks != 2 || file < 0 || rounds < 1 || rounds > kMost || sizes < 1 || sizes > kMostSizes) {
    fprintf(stderr, "usage, by two ranks: regime FILE ROUNDS KILOBYTES...; at most %d and %d\n",
            kMost, kMostSizes);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  void* const mapped = ftruncate(file, 64) != 0
                           ? MAP_FAILED
                           : mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    perror(argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  word = mapped;
  if (rank == 0) atomic_init(word, 0);
  long most = 0;
  for (int size = 0; size < sizes; ++size) {
    const long kilobytes = atol(argv[size + 3]);
    if (kilobytes < 1 || kilobytes > kMostKilobytes) {
      fprintf(stderr, "regime: %s is no number of kilobytes from 1 to %d\n", argv[size + 3],
              kMostKilobytes);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (kilobytes > most) most = kilobytes;
  }
  float* const in = malloc((size_t)most * 1024);
  float* const out = malloc((size_t)most * 1024);
  if (in == NULL || out == NULL) {
    fprintf(stderr, "regime: no memory for buffers of %ld KiB\n", most);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (long i = 0; i < most * 256; ++i) {
    in[i] = (float)(i * 7 % 1000) / 1024 + (float)rank;
    out[i] = 0;
  }
  for (int round = -2; round < rounds; ++round)
    for (int size = 0; size < sizes; ++size)
      for (int way = 0; way < kWays; ++way) {
        const long kilobytes = atol(argv[size + 3]);
        const int calls = (int)(1 + 8192 / (kilobytes + 128));
        const int before = regime();
        sum(way, in, out, (int)(kilobytes * 256), 1);
        const double time = sum(way, in, out, (int)(kilobytes * 256), calls);
        if (regime() == before && round >= 0)
          times[size][way][before][samples[size][way][before]++] = time;
      }
  for (int seen = 0; seen < kRegimes && rank == 0; ++seen) print(seen, sizes, argv + 3);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
