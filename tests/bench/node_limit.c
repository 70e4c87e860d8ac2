// SPDX-License-Identifier: BSD-3-Clause
// node_limit CALLS KILOBYTES...: what a sum inside a node takes beside its limit. Each rank reads
// its buffer from memory and writes a result of the same length to memory, as a copy of the buffer
// does. So no way of summing is faster than that copy by all ranks at the same time. Prints the
// medians, of the slowest rank, of MPI's own sum, slimpi's sum, memcpy, and a copy by non-temporal
// stores, all interleaved. Each has buffers of its own: where cores share no cache, what another
// rank has read or written costs more afterwards. Wants the preload.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { kWays = 4, kMost = 400, kWarmUp = 40 };

static void copy_nontemporal(float* to, const float* from, size_t count) {
#ifdef __SSE2__
  for (size_t i = 0; i + 4 <= count; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
  _mm_sfence();
#else
  memcpy(to, from, count * sizeof *to);
#endif
}

static void run(int way, const float* in, float* out, int count) {
  if (way == 0) PMPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (way == 1) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (way == 2) memcpy(out, in, (size_t)count * sizeof *out);
  if (way == 3) copy_nontemporal(out, in, (size_t)count);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(int most, int kilobytes, int rank) {
  static double times[kWays][kMost];
  const size_t bytes = (size_t)kilobytes << 10;
  const int count = (int)(bytes / sizeof(float)),
            calls = kilobytes > 16384 && most > 15 ? 15 : most;
  float *in[kWays], *out[kWays];
  for (int way = 0; way < kWays; ++way) {
    in[way] = aligned_alloc(64, bytes);
    out[way] = aligned_alloc(64, bytes);
    if (in[way] == NULL || out[way] == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(out[way], 0, bytes);
    for (int i = 0; i < count; ++i) in[way][i] = (float)((i * 7 + rank) % 1000) / 1024;
  }
  for (int call = -(calls < kWarmUp ? calls : kWarmUp); call < calls; ++call) {
    for (int way = 0; way < kWays; ++way) {
      PMPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      run(way, in[way], out[way], count);
      const double mine = MPI_Wtime() - begin;
      double slowest = 0;
      PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (call >= 0) times[way][call] = 1e6 * slowest;
    }
  }
  double median[kWays];
  for (int way = 0; way < kWays; ++way) {
    qsort(times[way], (size_t)calls, sizeof times[way][0], by_size);
    median[way] = times[way][calls / 2];
  }
  if (rank == 0) {
    printf("%9d %10.1f %10.1f %10.1f %12.1f %9.2f\n", kilobytes, median[0], median[1], median[2],
           median[3], median[0] / median[1]);
    fflush(stdout);
  }
  for (int way = 0; way < kWays; ++way) {
    free(in[way]);
    free(out[way]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  if (calls < 1 || calls > kMost) {
    if (rank == 0) fprintf(stderr, "node_limit: CALLS is a number from 1 to %d\n", kMost);
    MPI_Finalize();
    return 2;
  }
  if (rank == 0)
    printf("%9s %10s %10s %10s %12s %9s   microseconds\n", "KiB", "MPI", "slimpi", "memcpy",
           "non-temporal", "speed-up");
  for (int i = 2; i < argc; ++i) measure(calls, atoi(argv[i]), rank);
  MPI_Finalize();
  return 0;
}
