/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own traffic beside sums that are taken over. Usage: isolation WHAT:
 *   wildcards                 receives and probes of any message
 *   many COMMUNICATORS        one after the other
 *   live COMMUNICATORS        at once
 *   threads ROUNDS THREADS    each with a communicator of its own, on which it makes others
 *   pair ROUNDS THREADS       the same without others
 *   lookup CALLS              two threads set options
 * Whether slimpi's own use of MPI disturbs a program:
 *   all           makes communicators until MPI has no more, and sums on each of the first 300 and
 *                 on some of the last; prints how many there were
 *   full          sums for the first time when MPI has no room left for a communicator
 *   full_threads  the same in a program with threads
 *   handler       a thread watches the communicators' error handlers while others sum
 *   freed         sums on a communicator that was freed: the error handler runs once
 * Exits with 1 when a check fails, after saying which. With EXACT in the environment no sum may be
 * rounded. */
#include "tests/helper/base/program.h"

#include <dirent.h>
#include <stdatomic.h>

#define COUNT 30000

/* Returns whether a sum on all ranks is as close to the exact one as it must be. */
static int sum(MPI_Comm comm, int count, int seed) {
  return error_of_sum(comm, count, seed) <= (getenv("EXACT") != NULL ? 0 : 0.3 * g_size);
}

/* Makes a communicator of all ranks. Every second one has the ranks in reverse order. */
static MPI_Comm make(int number) {
  MPI_Comm made;
  if (number % 2)
    MPI_Comm_split(MPI_COMM_WORLD, 0, g_size - g_rank, &made);
  else
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return made;
}

static void wildcards(void) {
  MPI_Comm dup;
  MPI_Request pending[2];
  MPI_Status status;
  char letter = 'x', received[2] = {0, 0};
  int flag;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Irecv(&received[0], 1, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &pending[0]);
  MPI_Irecv(&received[1], 1, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, dup, &pending[1]);
  for (int call = 0; call < 20; ++call) {
    check(sum(call % 2 ? dup : MPI_COMM_WORLD, COUNT, call), "a sum beside wildcards is wrong");
    MPI_Test(&pending[0], &flag, MPI_STATUS_IGNORE);
    MPI_Test(&pending[1], &flag, MPI_STATUS_IGNORE);
    check(received[0] == 0 && received[1] == 0, "a wildcard receive got something");
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    check(!flag, "a wildcard probe of the world saw something");
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, dup, &flag, &status);
    check(!flag, "a wildcard probe saw something");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&letter, 1, MPI_CHAR, (g_rank + 1) % g_size, 5, MPI_COMM_WORLD);
  MPI_Send(&letter, 1, MPI_CHAR, (g_rank + 1) % g_size, 6, dup);
  MPI_Wait(&pending[0], &status);
  check(received[0] == 'x' && status.MPI_TAG == 5, "the receive got another message");
  MPI_Wait(&pending[1], &status);
  check(received[1] == 'x' && status.MPI_TAG == 6, "the other receive got another message");
  MPI_Comm_free(&dup);
}

static long resident_kb(void) {
  char line[256];
  long kb = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmRSS: %ld", &kb) == 1) break;
  if (file != NULL) fclose(file);
  return kb;
}

static int open_files(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (directory != NULL && readdir(directory) != NULL) ++count;
  if (directory != NULL) closedir(directory);
  return count;
}

/* Makes and frees communicators many times, more than the 2048 that MPICH has room for at a
 * time. */
static void many(int number) {
  long before = 0;
  int files = 0;
  for (int i = 0; i < number; ++i) {
    if (i == number / 5) before = resident_kb(), files = open_files();
    MPI_Comm made = make(i);
    if (i % 4 == 0) check(sum(made, 5, i), "a small sum is wrong");
    if (i % 20 == 1) check(sum(made, COUNT, i), "a sum is wrong");
    MPI_Comm_free(&made);
    if (g_failures > 3) return;
  }
  check(resident_kb() - before < 4096, "the process grew by more than 4 MB");
  check(open_files() == files, "files stay open");
}

/* Makes two sums on each of `number` communicators, which all live at once. slimpi leaves sums to
 * MPI on communicators that it has no room for. */
static void live(int number) {
  MPI_Comm* const made = malloc((size_t)number * sizeof *made);
  for (int i = 0; i < number && g_failures <= 3; ++i) {
    made[i] = make(i);
    check(sum(made[i], 17000, i), "a sum on one of many communicators is wrong");
  }
  for (int i = 0; i < number && g_failures <= 3; ++i)
    check(sum(made[i], 17000, i + 1), "another sum is wrong");
  for (int i = 0; i < number && g_failures <= 3; ++i) MPI_Comm_free(&made[i]);
  free(made);
  check(sum(MPI_COMM_WORLD, COUNT, 1), "a sum after all is wrong");
}

enum { kMostThreads = 6 };
static int rounds, thread_count, makes_others;
static MPI_Comm own[kMostThreads];
static pthread_barrier_t start;

static void* work(void* argument) {
  const int me = *(const int*)argument;
  pthread_barrier_wait(&start);
  for (int round = 0; round < rounds; ++round) {
    /* The threads run in a different order on every rank. */
    usleep((useconds_t)((me * 7 + g_rank * 5 + round * 3) % 11 * 100));
    check(sum(own[me], COUNT + 1000 * me, me + round), "a thread's sum is wrong");
    check(sum(own[me], 10, me), "a thread's small sum is wrong");
    if (!makes_others) continue;
    MPI_Comm made;
    MPI_Comm_dup(own[me], &made);
    check(sum(made, 20000, round), "a sum on a thread's new communicator is wrong");
    MPI_Comm_free(&made);
  }
  return NULL;
}

static void threads(void) {
  pthread_t running[kMostThreads];
  int names[kMostThreads];
  pthread_barrier_init(&start, NULL, (unsigned)thread_count);
  for (int i = 0; i < thread_count; ++i) own[i] = make(i);
  for (int i = 0; i < thread_count; ++i) {
    names[i] = i;
    pthread_create(&running[i], NULL, work, &names[i]);
  }
  for (int i = 0; i < thread_count; ++i) pthread_join(running[i], NULL);
  for (int i = 0; i < thread_count; ++i) MPI_Comm_free(&own[i]);
}

/* Two threads set options of their communicators as fast as they can, without messages. A wrong
 * option that one thread gave to the other's communicator would stay there, because only the first
 * communicator is turned off. */
static int calls;

static void* set_often(void* argument) {
  const int me = *(const int*)argument;
  MPI_Info info;
  MPI_Info_create(&info);
  if (me == 0) MPI_Info_set(info, "slimpi_algorithm", "off");
  if (me == 1) MPI_Info_set(info, "slimpi_seed", "1");
  pthread_barrier_wait(&start);
  for (int call = 0; call < calls; ++call) MPI_Comm_set_info(own[me], info);
  MPI_Info_free(&info);
  return NULL;
}

static void lookup(void) {
  pthread_t running[2];
  int names[2] = {0, 1};
  pthread_barrier_init(&start, NULL, 2);
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  for (int i = 0; i < 2; ++i) pthread_create(&running[i], NULL, set_often, &names[i]);
  for (int i = 0; i < 2; ++i) pthread_join(running[i], NULL);
  for (int i = 0; i < 2; ++i) check(sum(own[i], COUNT, i), "a sum after all is wrong");
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&own[i]);
}

static int handled;

static void count_errors(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}

enum { kMost = 4096 };
static MPI_Comm g_made[kMost];

static int fill(int first, int sums) {
  int count = first;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (count < kMost && MPI_Comm_dup(MPI_COMM_WORLD, &g_made[count]) == MPI_SUCCESS) {
    MPI_Comm_set_errhandler(g_made[count], MPI_ERRORS_ARE_FATAL);
    if (count < sums) check(sum(g_made[count], 20000, 0), "a sum is wrong");
    ++count;
  }
  return count;
}

static void empty(int count) {
  for (int i = 0; i < count; ++i) MPI_Comm_free(&g_made[i]);
}

static void all(void) {
  const int count = fill(0, 300);
  for (int i = count - 5; i < count; ++i) check(sum(g_made[i], 20000, 0), "a late sum is wrong");
  if (g_rank == 0) printf("%d communicators\n", count);
  empty(count);
  check(sum(MPI_COMM_WORLD, 20000, 0), "the last sum is wrong");
}

/* Checks error handlers, which end the job or count, on communicators that were never summed on. */
static void full(void) {
  const int count = fill(0, 0);
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_errors, &counting);
  MPI_Comm_set_errhandler(g_made[1], counting);
  check(sum(g_made[0], 20000, 0), "a sum without room is wrong");
  check(sum(g_made[1], 20000, 0), "another sum without room is wrong");
  check(sum(g_made[1], 20000, 0), "a second sum without room is wrong");
  check(handled == 0, "the error handler ran");
  MPI_Errhandler_free(&counting);
  empty(count);
  for (int i = 0; i < 2; ++i)
    check(sum(MPI_COMM_WORLD, 20000, 0), "a sum with room again is wrong");
}

enum { kSums = 20 };
static atomic_int watching = 1;

static void* watch(void* handler) {
  while (watching)
    for (int i = 0; i < kSums; ++i) {
      MPI_Errhandler now;
      MPI_Comm_get_errhandler(g_made[i], &now);
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
    MPI_Comm_dup(MPI_COMM_WORLD, &g_made[i]);
    MPI_Comm_set_errhandler(g_made[i], counting);
  }
  pthread_create(&watcher, NULL, watch, &counting);
  for (int i = 0; i < kSums; ++i)
    check(sum(g_made[i], 20000, 0), "a sum beside the watcher is wrong");
  watching = 0;
  pthread_join(watcher, NULL);
  check(handled == 0, "the error handler ran");
  MPI_Errhandler_free(&counting);
  empty(kSums);
}

/* Sums on freed handles, before and after slimpi knows any communicator: a handle that slimpi has
 * known, and others. */
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
    if (round % 3 == 1) check(sum(comm, 20000, 0), "a sum is wrong");
    MPI_Comm_free(&comm);
    MPI_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_SUM, stale);
    check(handled == before + 1, "the error handler did not run once");
    if (round > 2) check(sum(MPI_COMM_WORLD, 20000, 0), "a sum of the world is wrong");
  }
  MPI_Errhandler_free(&counting);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  makes_others = !strcmp(what, "threads");
  const int threaded = makes_others || !strcmp(what, "pair") || !strcmp(what, "lookup");
  const int watched = !strcmp(what, "full_threads") || !strcmp(what, "handler");
  const int level = threaded || watched ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  const int provided = begin_mpi_with(level);
  if (!strcmp(what, "wildcards")) wildcards();
  if (!strcmp(what, "many")) many(number);
  if (!strcmp(what, "live")) live(number);
  if (!strcmp(what, "all")) all();
  if (!strncmp(what, "full", 4)) full();
  if (!strcmp(what, "handler")) handler();
  if (!strcmp(what, "freed")) freed();
  if (threaded) {
    check(provided == MPI_THREAD_MULTIPLE, "this MPI has no MPI_THREAD_MULTIPLE");
    rounds = calls = number;
    thread_count = argc > 3 && atoi(argv[3]) <= kMostThreads ? atoi(argv[3]) : 2;
    if (!strcmp(what, "lookup"))
      lookup();
    else
      threads();
  }
  return end_mpi();
}
