/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums on many communicators of the same ranks, of which each needs memory that its ranks share.
 * Usage: small_shm COMMUNICATORS     two sums on each, one after the other
 *        small_shm loop COMMUNICATORS   the same, and each is freed before the next is made
 *        small_shm threads CALLS     two threads, each on a communicator of its own, one of them
 *                                    with the ranks in reverse order; odd ranks begin the other way
 * Exits with 1 when a sum is wrong. */
#include "tests/helper/program.h"

enum { kCount = 20000 };
static int calls;
static MPI_Comm own[2];
static pthread_barrier_t start;

/* The values are whole numbers, so the sum is exact whoever adds it. */
static int sum(MPI_Comm comm, int seed) {
  static _Thread_local float x[kCount];
  int good = 1;
  for (int i = 0; i < kCount; ++i) x[i] = (float)(g_rank + (i + seed) % 7);
  if (MPI_Allreduce(MPI_IN_PLACE, x, kCount, MPI_FLOAT, MPI_SUM, comm) != MPI_SUCCESS) return 0;
  for (int i = 0; i < kCount; ++i)
    good &= x[i] == (float)(g_size * ((i + seed) % 7) + g_size * (g_size - 1) / 2);
  return good;
}

static int sequence(int number) {
  int bad = !sum(MPI_COMM_WORLD, 0);
  MPI_Comm* const made = malloc((size_t)number * sizeof *made);
  if (made == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < number; ++i) {
    if (i % 2)
      MPI_Comm_split(MPI_COMM_WORLD, 0, g_size - g_rank, &made[i]);
    else
      MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    for (int call = 0; call < 2; ++call) bad |= !sum(made[i], i + call);
  }
  for (int i = 0; i < number; ++i) bad |= !sum(made[i], i);
  for (int i = 0; i < number; ++i) MPI_Comm_free(&made[i]);
  free(made);
  return bad;
}

static int loop(int number) {
  int bad = !sum(MPI_COMM_WORLD, 0);
  for (int i = 0; i < number; ++i) {
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    for (int call = 0; call < 2; ++call) bad |= !sum(made, i + call);
    MPI_Comm_free(&made);
  }
  return bad;
}

static void* work(void* argument) {
  const int me = *(const int*)argument;
  int* const bad = malloc(sizeof *bad);
  if (bad == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  *bad = 0;
  pthread_barrier_wait(&start);
  for (int call = 0; call < calls; ++call) *bad |= !sum(own[me], call + me);
  return bad;
}

static int threads(void) {
  pthread_t running[2];
  int names[2] = {g_rank % 2, 1 - g_rank % 2}, bad = 0;
  pthread_barrier_init(&start, NULL, 2);
  MPI_Comm_dup(MPI_COMM_WORLD, &own[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, g_size - g_rank, &own[1]);
  bad |= !sum(own[0], 0); /* so that both find the same memory */
  for (int i = 0; i < 2; ++i) pthread_create(&running[i], NULL, work, &names[i]);
  for (int i = 0; i < 2; ++i) {
    void* result = NULL;
    pthread_join(running[i], &result);
    bad |= *(int*)result;
    free(result);
  }
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&own[i]);
  return bad;
}

int main(int argc, char** argv) {
  const int threaded = argc > 2 && strcmp(argv[1], "threads") == 0;
  begin_mpi_with(threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  calls = threaded ? atoi(argv[2]) : 0;
  if (threaded)
    g_failures = threads();
  else if (argc > 2 && strcmp(argv[1], "loop") == 0)
    g_failures = loop(atoi(argv[2]));
  else
    g_failures = sequence(argc > 1 ? atoi(argv[1]) : 3);
  return end_mpi();
}
