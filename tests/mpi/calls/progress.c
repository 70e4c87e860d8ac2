// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking sums beside a computation that calls no MPI function, and slimpi's thread that
// advances them. Compares each result, byte by byte, with that of the blocking call. Run by
// progress.sh.
// Usage: progress LEVEL computes|waits
//   LEVEL     what the program asks for: multiple, funneled, none (MPI_Init), or hidden: none, by a
//             function that slimpi does not see
//   computes  the sums have to be complete before the program calls MPI again
//   waits     it waits for them at once
#include "tests/mpi/calls/nonblocking.h"

#include <dirent.h>
#include <time.h>

// Compares the result while the sum may still be running. A loop does so, because ThreadSanitizer
// would report the race in memcmp.
static int is_done(int i) {
  int j = 0;
  while (j < kCount && g_out[i][j] == g_blocking[i][j]) ++j;
  return j == kCount;
}

static void compute(void) {
  const time_t end = time(NULL) + 30;
  for (int i = 0; i < kMany; ++i)
    while (!is_done(i)) must(time(NULL) < end, "a sum in flight while the program computes");
}

static int has_thread(void) {
  int has = 0;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == NULL) return -1;
  for (const struct dirent* task; (task = readdir(tasks)) != NULL;) {
    char path[300], name[20] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* const file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strcmp(name, "slimpi\n") == 0) has = 1;
    fclose(file);
  }
  closedir(tasks);
  return has;
}

int main(int argc, char** argv) {
  MPI_Request requests[kMany + 1] = {[kMany] = MPI_REQUEST_NULL};
  int provided = MPI_THREAD_MULTIPLE;
  if (argc != 3) return 2;
  const int computes = strcmp(argv[2], "computes") == 0;
  if (strcmp(argv[1], "multiple") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else if (strcmp(argv[1], "funneled") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  else if (strcmp(argv[1], "none") == 0)
    MPI_Init(&argc, &argv);
  else
    PMPI_Init(&argc, &argv);
  find_ranks();
  fill();
  blocking(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  begin_all(MPI_COMM_WORLD, requests);
  if (computes) {
    must(provided == MPI_THREAD_MULTIPLE, "the level that the program is told");
    compute();
    must(has_thread() == 1, "a thread while sums are in flight");
  }
  MPI_Waitall(kMany + 1, requests, MPI_STATUSES_IGNORE);
  same("the bytes of the blocking call");
  MPI_Finalize();
  if (has_thread() != 0) {
    printf("FAIL rank %d: the thread outlives MPI_Finalize\n", g_rank);
    return 1;
  }
  return 0;
}
