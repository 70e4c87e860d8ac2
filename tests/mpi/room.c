/* SPDX-License-Identifier: BSD-3-Clause */
/* Shows whether slimpi's own use of MPI disturbs a program. Usage: room WHAT:
 *   all      makes communicators until MPI has no more, and sums on each of the first 300 and on
 *            some of the last; prints how many there were
 *   full     sums for the first time when MPI has no room left for a communicator
 *   threads  the same in a program with threads
 *   handler  a thread watches the communicators' error handlers while others sum
 *   freed    sums on a communicator that was freed: the error handler runs once */
#include "tests/helper/program.h"

#include <stdatomic.h>

static int handled;

static void count_errors(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}

static int sum(MPI_Comm comm) {
  return error_of_sum(comm, 20000, 0) < 0.5 * g_size;
}

enum { kMost = 4096 };
static MPI_Comm made[kMost];

static int fill(int first, int sums) {
  int count = first;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (count < kMost && MPI_Comm_dup(MPI_COMM_WORLD, &made[count]) == MPI_SUCCESS) {
    MPI_Comm_set_errhandler(made[count], MPI_ERRORS_ARE_FATAL);
    if (count < sums) check(sum(made[count]), "a sum is wrong");
    ++count;
  }
  return count;
}

static void empty(int count) {
  for (int i = 0; i < count; ++i) MPI_Comm_free(&made[i]);
}

static void all(void) {
  const int count = fill(0, 300);
  for (int i = count - 5; i < count; ++i) check(sum(made[i]), "a late sum is wrong");
  if (g_rank == 0) printf("%d communicators\n", count);
  empty(count);
  check(sum(MPI_COMM_WORLD), "the last sum is wrong");
}

/* Checks error handlers that end the job or count, on communicators that were never summed on. */
static void full(void) {
  const int count = fill(0, 0);
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_errors, &counting);
  MPI_Comm_set_errhandler(made[1], counting);
  check(sum(made[0]), "a sum without room is wrong");
  check(sum(made[1]), "another sum without room is wrong");
  check(sum(made[1]), "a second sum without room is wrong");
  check(handled == 0, "the error handler ran");
  MPI_Errhandler_free(&counting);
  empty(count);
  for (int i = 0; i < 2; ++i) check(sum(MPI_COMM_WORLD), "a sum with room again is wrong");
}

enum { kSums = 20 };
static atomic_int watching = 1;

static void* watch(void* handler) {
  while (watching)
    for (int i = 0; i < kSums; ++i) {
      MPI_Errhandler now;
      MPI_Comm_get_errhandler(made[i], &now);
      check(now == *(MPI_Errhandler*)handler, "the error handler changed");
      MPI_Errhandler_free(&now);
      if (g_failures > 3) return NULL;
    }
  return NULL;
}

static void handler(void) {
  MPI_Errhandler counting;
  pthread_t watcher;
  MPI_Comm_create_errhandler(count_errors, &counting);
  for (int i = 0; i < kSums; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    MPI_Comm_set_errhandler(made[i], counting);
  }
  pthread_create(&watcher, NULL, watch, &counting);
  for (int i = 0; i < kSums; ++i) check(sum(made[i]), "a sum beside the watcher is wrong");
  watching = 0;
  pthread_join(watcher, NULL);
  check(handled == 0, "the error handler ran");
  MPI_Errhandler_free(&counting);
  empty(kSums);
}

/* Sums on a freed handle before and after slimpi follows any communicator: a handle that slimpi
 * followed, and others. */
static void freed(void) {
  MPI_Errhandler counting;
  MPI_Comm comm, stale;
  MPI_Comm_create_errhandler(count_errors, &counting);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  for (int round = 0; round < 6; ++round) {
    float x = 1, y = 0;
    const int before = handled;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    stale = comm;
    if (round % 3 == 1) check(sum(comm), "a sum is wrong");
    MPI_Comm_free(&comm);
    MPI_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_SUM, stale);
    check(handled == before + 1, "the error handler did not run once");
    if (round > 2) check(sum(MPI_COMM_WORLD), "a sum of the world is wrong");
  }
  MPI_Errhandler_free(&counting);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int threaded = !strcmp(what, "threads") || !strcmp(what, "handler");
  begin_mpi_with(threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  if (!strcmp(what, "all")) all();
  if (!strcmp(what, "full") || !strcmp(what, "threads")) full();
  if (!strcmp(what, "handler")) handler();
  if (!strcmp(what, "freed")) freed();
  return end_mpi();
}
