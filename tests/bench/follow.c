// SPDX-License-Identifier: BSD-3-Clause
// follow FLOATS SECONDS: all-reduces for so long and says ten times a second what a call took, the
// median of the slowest rank, and whether its result was the exact sum.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMost = 4096 };

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = argc > 1 ? atoi(argv[1]) : 65536;
  const double seconds = argc > 2 ? atof(argv[2]) : 5;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float* in = malloc((size_t)count * sizeof *in);
  float* out = malloc((size_t)count * sizeof *out);
  for (int i = 0; i < count; ++i) in[i] = (float)((i * 7 + rank) % 1000) / 1024;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int going = 1; going;) {
    static double times[kMost];
    int calls = 0, inexact = 0;
    const double begin = MPI_Wtime();
    for (int more = 1; more && calls < kMost; ++calls) {
      const double before = MPI_Wtime();
      MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      times[calls] = MPI_Wtime() - before;
      double exact = 0;
      for (int r = 0; r < ranks; ++r) exact += (double)((5 * 7 + r) % 1000) / 1024;
      inexact += out[5] != (float)exact;
      more = MPI_Wtime() - begin < 0.1;
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    qsort(times, (size_t)calls, sizeof *times, by_size);
    double median = times[calls / 2], slowest = 0;
    MPI_Reduce(&median, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("%5.1f s  %4d calls  %9.0f us  %3.0f %% compressed\n", begin - start, calls,
             1e6 * slowest, 100.0 * inexact / calls);
      fflush(stdout);
    }
    going = begin - start < seconds;
    MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
