/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that is lost, or has no memory left, on one rank. If it is lost in the middle of a sum,
 * every rank of the communicator must get an MPI error with the device's own text, in that call or
 * the next, and other communicators must work again when the device is back. If it has no memory,
 * slimpi must leave the call to MPI on all ranks or work with less, but return no error. Run under
 * the preload with the argument `lost`, `memory`, or `memory any` for algorithms whose ranks get
 * different sums. */
#include "tests/helper/base/program.h"

#include "tests/helper/devices/protected_device.h"
#include "tests/helper/mpi/mpi4.h"

#define COUNT 200003
#define BYTES (COUNT * sizeof(float))

static int g_any;
static float *g_values, *g_result, *g_expected, *g_in, *g_out;

static void wrong(const char* what, unsigned long detail) {
  printf("rank %d: %s (%lu)\n", g_rank, what, detail);
  ++g_failures;
}

static int sum(MPI_Comm comm) {
  slimpi_protected_write(g_in, g_values, BYTES);
  const int code = MPI_Allreduce(g_in, g_out, COUNT, MPI_FLOAT, MPI_SUM, comm);
  if (code == MPI_SUCCESS) slimpi_protected_read(g_result, g_out, BYTES);
  return code;
}

static MPI_Comm uninitialized(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

static void lose_after(unsigned long pieces) {
  MPI_Comm comm = uninitialized();
  int code = MPI_SUCCESS;
  if (g_rank == 1) slimpi_protected_lose(pieces);
  for (int call = 0; call < 3 && code == MPI_SUCCESS; ++call) code = sum(comm);
  if (g_rank == 1) slimpi_protected_repair();
  const char* const text = error_text(code);
  if (strstr(text, "the protected device is lost") == NULL) {
    printf("rank %d: \"%s\"\n", g_rank, text);
    wrong("no error that names the lost device", pieces);
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  comm = uninitialized();
  if (sum(comm) != MPI_SUCCESS || memcmp(g_result, g_expected, BYTES) != 0)
    wrong("other bytes after the device is back", pieces);
  MPI_Comm_free(&comm);
}

static void run_out_after(size_t bytes) {
  MPI_Comm comm = uninitialized();
  if (g_rank == 1) slimpi_protected_limit(slimpi_protected_used() + bytes);
  for (int call = 0; call < 2; ++call) {
    if (sum(comm) != MPI_SUCCESS) {
      wrong("an error where memory is short", bytes);
      break;
    }
    if (g_any) continue;
    if (!has_rank_0_s(g_result, BYTES)) wrong("ranks differ", bytes);
    if (error_of_whole(g_result, COUNT, 0, g_size) > 2) wrong("a wrong sum", bytes);
  }
  slimpi_protected_limit(SIZE_MAX);
  MPI_Comm_free(&comm);
}

#if HAS_PERSISTENT_SUMS || !defined(OPEN_MPI)
/* The text of the last error on MPI_COMM_WORLD, and errors on other communicators. */
static char g_text[MPI_MAX_ERROR_STRING];
static int g_elsewhere;

static void note_error(MPI_Comm* comm, int* code, ...) {
  snprintf(g_text, sizeof g_text, "%s", error_text(*code));
  g_elsewhere += *comm != MPI_COMM_WORLD;
}

static void expect_error(int code, const char* what) {
  slimpi_protected_repair();
  if (code == MPI_SUCCESS || g_elsewhere != 0 ||
      strstr(g_text, "the protected device is lost") == NULL)
    wrong(what, (unsigned long)code);
  g_text[0] = '\0';
}

/* Loses the device of rank 0 while maxima that MPI makes on copies are in flight, or wait for their
 * start, and the program has freed their communicator. Another one may have got its handle. The
 * error then belongs to MPI_COMM_WORLD. */
static void lose_after_free(void) {
  MPI_Errhandler handler;
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_create_errhandler(&note_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
#ifndef OPEN_MPI  /* Open MPI 5 itself crashes if this communicator is freed */
  char ready = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  if (g_rank == 1) MPI_Recv(&ready, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallreduce(g_in, g_out, COUNT, MPI_FLOAT, MPI_MAX, comm, &request);
  if (g_rank == 0) MPI_Send(&ready, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  if (g_rank == 0) slimpi_protected_lose(0);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (g_rank == 0) expect_error(code, "an error of a request whose communicator is freed");
#endif
#if HAS_PERSISTENT_SUMS
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Allreduce_init(g_in, g_out, COUNT, MPI_FLOAT, MPI_MAX, comm, MPI_INFO_NULL, &request);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(other, handler);
  if (g_rank == 0) slimpi_protected_lose(0);
  if (g_rank == 0) expect_error(MPI_Start(&request), "an error of a start after the free");
  MPI_Request_free(&request);
  MPI_Comm_free(&other);
#endif
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}
#else
static void lose_after_free(void) {}
#endif

int main(int argc, char** argv) {
  begin_mpi();
  g_values = malloc(BYTES);
  g_result = malloc(BYTES);
  g_expected = malloc(BYTES);
  g_in = slimpi_protected_allocate(BYTES);
  g_out = slimpi_protected_allocate(BYTES);
  fill_whole(g_values, COUNT, 0, g_rank);
  const size_t room[] = {0, 70000, 1u << 20, 3u << 20, 20u << 20};
  g_any = argc > 2;
  const int memory = argc > 1 && strcmp(argv[1], "memory") == 0;
  for (size_t i = 0; memory && i < sizeof room / sizeof *room; ++i) run_out_after(room[i]);
  if (!memory) {
    MPI_Comm comm = uninitialized();
    const unsigned long before = slimpi_protected_work();
    if (sum(comm) != MPI_SUCCESS) wrong("an error of a healthy device", 0);
    unsigned long pieces = slimpi_protected_work() - before;
    memcpy(g_expected, g_result, BYTES);
    MPI_Comm_free(&comm);
    PMPI_Bcast(&pieces, 1, MPI_UNSIGNED_LONG, 1, MPI_COMM_WORLD);
    for (int part = 0; part < 4; ++part) lose_after(pieces * (unsigned)part / 4);
    lose_after(pieces - 1);
    lose_after_free();
  }
  return end_mpi();
}
