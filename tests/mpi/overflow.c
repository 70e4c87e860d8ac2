/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain MPI program for tests/mpi/overflow.sh: sums floats of which some, or whose sums, are more
 * than a half can hold. Every value that should be infinite is, all others are not.
 * Usage: overflow LIMIT CALLS, LIMIT being the greatest half */
#include "tests/helper/program.h"

#define COUNT 30011

static float limit;

/* One value in 70 is too large on one rank, one in 110 has a sum that is too large, and one in 130
 * is an infinity. */
static float value(int i, int r) {
  if (i % 70 == 0) return r == i / 70 % g_size ? 1.003f * limit : 1;
  if (i % 110 == 0) return r == 0 || r == g_size - 1 ? -0.6f * limit : 0;
  if (i % 130 == 0) return r == g_size - 1 ? INFINITY : 2;
  return (float)((i * 7 + r * 13) % 101);
}

int main(int argc, char** argv) {
  static float in[COUNT], out[COUNT];
  int bad = 0, overflows = 0;
  begin_mpi();
  limit = argc > 1 ? (float)atof(argv[1]) : 65504;
  for (int call = 0; call < (argc > 2 ? atoi(argv[2]) : 1); ++call) {
    const int in_place = call % 2 == 0;
    for (int i = 0; i < COUNT; ++i) (in_place ? out : in)[i] = value(i, g_rank);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; ++i) {
      const int wanted = i % 70 == 0 || i % 110 == 0 || i % 130 == 0;
      bad += wanted != !!isinf(out[i]);
      overflows += wanted;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (g_rank == 0) printf("%d\n", overflows);
  if (g_rank == 0 && bad != 0) fprintf(stderr, "%d values are wrong\n", bad);
  MPI_Finalize();
  return bad == 0 ? 0 : 1;
}
