// SPDX-License-Identifier: BSD-3-Clause
// How well a nonblocking sum and the program's own computation overlap. Run by overlap.sh on
// emulated hosts. Each row is the median of ROUNDS, of the time of the last rank; the ways take
// turns. Then: the mean CPU time of a rank's main thread and of its others, in user and kernel
// mode.
//   blocking        MPI_Allreduce
//   nonblocking     MPI_Iallreduce and MPI_Wait at once
//   computation     MS milliseconds of computation alone
//   tested          the sum in flight during the computation, with an MPI_Test every millisecond
//   untested        the same without MPI_Test
//   four            four sums of a quarter, started together
// Usage: overlap MIB MS ROUNDS
#define _GNU_SOURCE  // RUSAGE_THREAD
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum Way { kBlocking, kNonblocking, kComputation, kTested, kUntested, kFour, kWays };
static const char* const g_names[] = {"blocking", "nonblocking", "computation",
                                      "tested",   "untested",    "four"};

static float *g_in, *g_out;
static int g_count;
static double g_seconds;
static volatile double g_result;

// Adds until the clock says so. Some microseconds lie between two looks at the clock.
static void compute(double until) {
  double sum = g_result;
  while (MPI_Wtime() < until)
    for (int i = 0; i < 2000; ++i) sum = sum * 0.999999 + i;
  g_result = sum;
}

static void begin(int first, int count, MPI_Request* request) {
  MPI_Iallreduce(g_in + first, g_out + first, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
}

enum { kMainUser, kMainKernel, kOthersUser, kOthersKernel, kCpuTimes };

static double seconds(struct timeval time) {
  return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

// Adds the CPU times so far, times `sign`.
static void add_cpu(double* to, double sign) {
  struct rusage main, all;
  getrusage(RUSAGE_THREAD, &main);
  getrusage(RUSAGE_SELF, &all);
  const double user = seconds(main.ru_utime), kernel = seconds(main.ru_stime);
  to[kMainUser] += sign * user;
  to[kMainKernel] += sign * kernel;
  to[kOthersUser] += sign * (seconds(all.ru_utime) - user);
  to[kOthersKernel] += sign * (seconds(all.ru_stime) - kernel);
}

static double run(enum Way way, double* cpu) {
  MPI_Request requests[4];
  int done = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  add_cpu(cpu, -1);
  const double start = MPI_Wtime(), end = start + g_seconds;
  switch (way) {
    case kBlocking:
      MPI_Allreduce(g_in, g_out, g_count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case kNonblocking:
      begin(0, g_count, requests);
      MPI_Wait(requests, MPI_STATUS_IGNORE);
      break;
    case kComputation:
      compute(end);
      break;
    case kTested:
      begin(0, g_count, requests);
      while (MPI_Wtime() < end) {
        compute(MPI_Wtime() + 1e-3);
        if (!done) MPI_Test(requests, &done, MPI_STATUS_IGNORE);
      }
      MPI_Wait(requests, MPI_STATUS_IGNORE);
      break;
    case kUntested:
      begin(0, g_count, requests);
      compute(end);
      MPI_Wait(requests, MPI_STATUS_IGNORE);
      break;
    case kFour:
      for (int i = 0; i < 4; ++i) begin(i * (g_count / 4), g_count / 4, &requests[i]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      break;
    case kWays:
      break;
  }
  double own = MPI_Wtime() - start, last;
  add_cpu(cpu, 1);
  MPI_Allreduce(&own, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return last;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  int rank, size, provided;
  if (argc != 4) return 2;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  g_count = atoi(argv[1]) << 18;
  g_seconds = atof(argv[2]) / 1e3;
  const int rounds = atoi(argv[3]);
  g_in = malloc((size_t)g_count * sizeof *g_in);
  g_out = malloc((size_t)g_count * sizeof *g_out);
  double* const times = malloc((size_t)rounds * kWays * sizeof *times);
  for (int i = 0; i < g_count; ++i) g_in[i] = (float)((i * 7 + rank * 13) % 1001) / 500 - 1;
  double cpu[kWays][kCpuTimes], unused[kCpuTimes];
  memset(cpu, 0, sizeof cpu);
  run(kBlocking, unused);
  run(kFour, unused);
  for (int round = 0; round < rounds; ++round)
    for (int way = 0; way < kWays; ++way)
      times[way * rounds + round] = run((enum Way)way, cpu[way]);
  MPI_Allreduce(MPI_IN_PLACE, cpu, kWays * kCpuTimes, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int way = 0; way < kWays && rank == 0; ++way) {
    double* const of = times + way * rounds;
    qsort(of, (size_t)rounds, sizeof *of, compare);
    const double of_rank = 1e3 / rounds / size;
    printf("%-12s %7.1f ms  (%.1f to %.1f)  CPU: main %.1f + %.1f, others %.1f + %.1f\n",
           g_names[way], of[rounds / 2] * 1e3, of[0] * 1e3, of[rounds - 1] * 1e3,
           cpu[way][kMainUser] * of_rank, cpu[way][kMainKernel] * of_rank,
           cpu[way][kOthersUser] * of_rank, cpu[way][kOthersKernel] * of_rank);
  }
  MPI_Finalize();
  return 0;
}
