/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums while slimpi runs out of memory: on new communicators one after the other, allocation N of
 * slimpi's in their first two sums fails, on rank RANK or (-1) on all. Every call returns; it gives
 * the right sum, or an error; if the first one fails on some rank, the second one fails on all.
 * Prints a line for each N, and the last N that is reached at all. With TEST_WARM=COUNTS in the
 * environment, a comma between them, sums of these counts come first, with all memory. With
 * TEST_NONBLOCKING all are nonblocking.
 * Usage: exceptions RANK MORE COUNT N...: so many allocations after that fail, too; sums of COUNT
 */
#include "tests/helper/base/program.h"

#include "tests/helper/base/allocations.h"

static int n, warm[8], warm_counts;
static float *in, *out;
static unsigned long (*count_allocations)(void);
static void (*fail_allocations)(unsigned long, unsigned long);

/* Makes a sum and returns 0 if it is right, 1 for an error of MPI, and 2 for anything else. */
static int sum(MPI_Comm comm, int n) {
  MPI_Request request;
  int code;
  if (getenv("TEST_NONBLOCKING") != NULL) {
    code = MPI_Iallreduce(in, out, n, MPI_FLOAT, MPI_SUM, comm, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* If slimpi has no memory to remember the request, MPI_Wait returns an error and the request
     * stays incomplete. */
    if (code != MPI_SUCCESS && request != MPI_REQUEST_NULL) {
      fail_allocations(0, 0);
      code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  } else {
    code = MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, comm);
  }
  if (code != MPI_SUCCESS) return 1;
  return error_of_whole(out, n, 0, g_size) < 2 * g_size ? 0 : 2;
}

/* Judges the results of a communicator's two sums. All ranks must know of an error in the first one
 * by the end of the second. */
static int judge(unsigned long number, const int results[2]) {
  int all[2], least[2];
  PMPI_Allreduce(results, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  PMPI_Allreduce(results, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  const int bad = all[0] == 2 || all[1] == 2 || (all[0] == 1 && least[1] != 1);
  if (g_rank == 0)
    printf("%lu: first %s, second %s%s\n", number, all[0] == 0 ? "right" : "error",
           all[1] == 0 ? "right" : "error", bad ? " WRONG" : "");
  return bad;
}

/* Makes allocation `number` fail during the two sums of a new communicator. */
static int attempt(unsigned long number, int poor, unsigned long more) {
  MPI_Comm comm;
  int results[2], bad = 0;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < warm_counts; ++i)
    if (sum(comm, warm[i]) != 0) bad = 1;
  if (bad) printf("WRONG while there is memory\n");
  const unsigned long before = count_allocations();
  if (poor < 0 || poor == g_rank) fail_allocations(number, more);
  results[0] = sum(comm, n);
  results[1] = sum(comm, n);
  fail_allocations(0, 0);
  const unsigned long made = count_allocations() - before;
  bad |= judge(number, results);
  if (g_rank == (poor < 0 ? 0 : poor) && made < number) printf("%lu: not reached\n", number);
  fflush(stdout);
  PMPI_Comm_free(&comm);
  return bad;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int threads = getenv("TEST_NONBLOCKING") != NULL;
  begin_mpi_with(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  count_allocations = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "test_allocations");
  fail_allocations =
      (void (*)(unsigned long, unsigned long))dlsym(RTLD_DEFAULT, "test_fail_allocations");
  if (count_allocations == NULL) return 2;
  int most = n = atoi(argv[3]);
  const char* text = getenv("TEST_WARM");
  for (char* end; text != NULL && *text != '\0' && warm_counts < 8; text = end + (*end == ',')) {
    const int count = warm[warm_counts++] = (int)strtol(text, &end, 10);
    if (count > most) most = count;
  }
  in = malloc((size_t)most * sizeof *in);
  out = malloc((size_t)most * sizeof *out);
  fill_whole(in, most, 0, g_rank);
  /* slimpi starts in the first call of the process; "start" makes this call fail. */
  if (strcmp(argv[4], "start") == 0 && g_rank == atoi(argv[1])) fail_allocations(1, 1000000);
  int bad = sum(MPI_COMM_WORLD, n) != 0;
  if (g_rank == 0 && bad) printf("WRONG before any allocation fails\n");
  for (int i = 4; i < argc && strcmp(argv[4], "start") != 0; ++i)
    bad |= attempt(strtoul(argv[i], NULL, 10), atoi(argv[1]), strtoul(argv[2], NULL, 10));
  free(in);
  free(out);
  MPI_Finalize();
  return bad;
}
