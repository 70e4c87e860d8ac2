/* SPDX-License-Identifier: BSD-3-Clause */
/* The last rank of the world stops in the middle of a sum (faults.c), and continues after the
 * others have got their error. Its late messages must change neither the buffers of the failed sum
 * nor later sums of the others. */
#include "tests/helper/base/program.h"

#define COUNT 400000

static float in[COUNT], out[COUNT], x[COUNT], y[COUNT];

/* Returns whether a sum of the ranks that do not stop is right. */
static int sum_of_others(MPI_Comm others) {
  fill_whole(x, COUNT, 0, g_rank);
  return MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, others) == MPI_SUCCESS &&
         error_of_whole(y, COUNT, 0, g_size - 1) == 0;
}

/* Lets MPI finish the messages of the failed sum, and then tells the others. */
static void tell_others(void) {
  for (int i = 0, flag; i < 50; ++i) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    usleep(10000);
  }
  for (int rank = 0; rank < g_size - 1; ++rank)
    MPI_Send(NULL, 0, MPI_CHAR, rank, 1, MPI_COMM_WORLD);
}

static void sum_until_told(MPI_Comm others) {
  int told = 0, changed = 0, sums = 0, wrong = 0;
  MPI_Barrier(others); /* no rank waits for the failed sum any more */
  for (int i = 0; i < COUNT; ++i) in[i] = out[i] = -1;
  for (; !told; ++sums) {
    wrong += !sum_of_others(others);
    MPI_Iprobe(g_size - 1, 1, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, &told, 1, MPI_INT, MPI_MIN, others);
  }
  MPI_Recv(NULL, 0, MPI_CHAR, g_size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT; ++i) changed += in[i] != -1 || out[i] != -1;
  printf("rank %d: %d of %d sums wrong, %d elements changed\n", g_rank, wrong, sums, changed);
  check(wrong == 0, "a message of a failed sum changes a later sum");
  check(changed == 0, "a message of a failed sum changes its buffers after the error");
}

int main(void) {
  MPI_Comm all, others;
  begin_mpi();
  const int stops = g_rank == g_size - 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Comm_split(MPI_COMM_WORLD, stops, g_rank, &others);
  if (!stops) check(sum_of_others(others), "the first sum of the others");
  fill_whole(in, COUNT, 0, g_rank);
  const int code = MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, all);
  /* Ranks before the last but one may have the whole sum already, and learn of the failure
   * later. */
  if (g_rank == g_size - 2) check(code != MPI_SUCCESS, "no error");
  if (stops)
    tell_others();
  else
    sum_until_told(others);
  return end_mpi();
}
