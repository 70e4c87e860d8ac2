/* SPDX-License-Identifier: BSD-3-Clause */
/* slimpi_describe_next with one matrix in every manner; run with SLIMPI_ALGORITHM=powersgd.
 *   shapes every     the same shape before each of 20 sums
 *   shapes change    another shape after 5 of 10 sums, on all ranks
 *   shapes alone     rank 1 alone names a shape after 5 sums: prints the error of the next one
 *   shapes corrected  two ranks: rank 1 alone names a shape, and after the error the common one;
 *                    the next sum is as good as those before
 *   shapes refused   what slimpi_describe_next does not take, and a matrix that is larger than
 *                    the buffer
 *   shapes threads   threads with communicators of their own name shapes and sum */
#include "tests/helper/base/program.h"

enum { kRows = 64, kColumns = 96, kThreads = 4, kSums = 60 };
static int (*describe_next)(const slimpi_tensor_t*);

/* Gives slimpi the shape of the matrix in the next sum. */
static void set_shape(uint64_t rows, uint64_t columns) {
  const slimpi_matrix_t matrix = {rows, columns};
  const slimpi_tensor_t tensor = {sizeof tensor, NULL, &matrix, 1};
  g_failures += describe_next(&tensor) != 0;
}

/* Sums a matrix of rank one, which powersgd sums well because it is the same on all ranks up to a
 * factor. */
static int sum(MPI_Comm comm, int rows, int columns, float* x) {
  int own, size, code;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < rows * columns; ++i)
    x[i] = (float)((own + 1) * (i / columns % 7 + 1) * (i % columns % 5 + 1));
  code = MPI_Allreduce(MPI_IN_PLACE, x, rows * columns, MPI_FLOAT, MPI_SUM, comm);
  return code;
}

static void check_code(int code) {
  if (code == MPI_SUCCESS) return;
  printf("%d error %s\n", g_rank, error_text(code));
  fflush(stdout);
  ++g_failures;
}

/* Sums on two ranks a matrix whose part that is not of rank one cancels if both ranks multiply by
 * the same factor. `wrong`: MPI_Allreduce must return an error. */
static void sum_cancelling(float* x, int wrong) {
  double error = 0, norm = 0;
  int code;
  for (int i = 0; i < kRows * kColumns; ++i)
    x[i] = (float)((i / kColumns % 7 + 1) * (i % kColumns % 5 + 1)) +
           (float)(1 - 2 * g_rank) * (float)(i * 7919 % 1009);
  code = MPI_Allreduce(MPI_IN_PLACE, x, kRows * kColumns, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if ((code != MPI_SUCCESS) != wrong) ++g_failures;
  if (code != MPI_SUCCESS) return;
  for (int i = 0; i < kRows * kColumns; ++i) {
    const double exact = 2 * (i / kColumns % 7 + 1) * (i % kColumns % 5 + 1);
    error += (x[i] - exact) * (x[i] - exact);
    norm += exact * exact;
  }
  if (error < 1e-6 * norm) return;
  printf("%d relative error %g\n", g_rank, sqrt(error / norm));
  ++g_failures;
}

static void correct(float* x) {
  for (int i = 0; i < 10; ++i) {
    const int wrong = g_rank == 1 && i == 5;
    set_shape(wrong ? kColumns : kRows, wrong ? kRows : kColumns);
    sum_cancelling(x, i == 5);
  }
}

static void refuse(float* x) {
  const uint64_t many = (uint64_t)1 << 33;
  const slimpi_matrix_t empty[] = {{kRows, kColumns}, {5, 0}}, huge = {many, many},
                        more = {kRows + 1, kColumns};
  const slimpi_tensor_t refused[] = {{0, "x", NULL, 0},
                                     {sizeof refused[0], "x", NULL, 2},
                                     {sizeof refused[0], "x", empty, 2},
                                     {sizeof refused[0], "x", &huge, 1}};
  const slimpi_tensor_t larger = {sizeof larger, "x", &more, 1};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i)
    g_failures += describe_next(&refused[i]) == 0;
  for (int i = 0; i < 3; ++i) {
    g_failures += describe_next(&larger) != 0;
    sum_cancelling(x, 0);
  }
}

static void* work(void* comm) {
  float* x = malloc(sizeof(float) * kRows * kColumns);
  for (int i = 0; i < kSums; ++i) {
    set_shape(kRows, kColumns);
    check_code(sum(*(MPI_Comm*)comm, kRows, kColumns, x));
  }
  free(x);
  return NULL;
}

static void threads(void) {
  pthread_t thread[kThreads];
  MPI_Comm comms[kThreads];
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < kThreads; ++i) pthread_create(&thread[i], NULL, work, &comms[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(thread[i], NULL);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  float* x = malloc(sizeof(float) * kRows * kColumns);
  begin_mpi_with(strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  *(void**)&describe_next = dlsym(RTLD_DEFAULT, "slimpi_describe_next");
  if (describe_next == NULL) return 2;
  if (strcmp(what, "threads") == 0) threads();
  if (strcmp(what, "corrected") == 0) correct(x);
  if (strcmp(what, "refused") == 0) refuse(x);
  for (int i = 0; i < 20 && strcmp(what, "every") == 0; ++i) {
    set_shape(kRows, kColumns);
    check_code(sum(MPI_COMM_WORLD, kRows, kColumns, x));
  }
  for (int i = 0; i < 10 && (!strcmp(what, "change") || !strcmp(what, "alone")); ++i) {
    const int other = i >= 5 && (g_rank == 1 || what[0] == 'c');
    set_shape(other ? kColumns : kRows, other ? kRows : kColumns);
    check_code(sum(MPI_COMM_WORLD, kRows, kColumns, x));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  free(x);
  return g_failures != 0;
}
