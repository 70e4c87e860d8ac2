/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that goes on after errors, and prints for every rank how each call went:
 *   RANK CALL exact|near|wrong       for a call that returned
 *   RANK CALL error TEXT             for one that failed
 * Usage: failures return|fatal. TEST_NO_MEMORY=RANK:BYTES: on that rank no aligned memory of BYTES
 * or more can be had. */
#include "tests/helper/program.h"

#include <errno.h>

/* Replaces the C library's function: the linker exports it to preloaded libraries. */
void* aligned_alloc(size_t alignment, size_t bytes) {
  const char* limit = getenv("TEST_NO_MEMORY");
  int poor = -1;
  size_t most = 0;
  void* memory = NULL;
  if (alignment < sizeof memory) alignment = sizeof memory; /* posix_memalign takes no less */
  if (limit != NULL && sscanf(limit, "%d:%zu", &poor, &most) == 2 && g_rank == poor &&
      bytes >= most) {
    errno = ENOMEM;
    return NULL;
  }
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void sum(const char* name, int n, MPI_Comm comm) {
  float* x = malloc((size_t)n * sizeof *x);
  double worst = 0;
  for (int i = 0; i < n; ++i) x[i] = (float)((i * 7 + g_rank * 13) % 101);
  const int code = MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, comm);
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length;
    MPI_Error_string(code, text, &length);
    for (char* c = text; *c != '\0'; ++c)
      if (*c == '\n') *c = ' ';
    printf("%d %s error %.60s\n", g_rank, name, text); /* mpiexec may cut longer lines in two */
  } else {
    for (int i = 0; i < n; ++i) {
      double exact = 0;
      for (int r = 0; r < g_size; ++r) exact += (i * 7 + r * 13) % 101;
      worst = fmax(worst, fabs(x[i] - exact));
    }
    printf("%d %s %s\n", g_rank, name,
           worst == 0           ? "exact"
           : worst < 2 * g_size ? "near"
                                : "wrong");
  }
  fflush(stdout);
  free(x);
}

int main(int argc, char** argv) {
  MPI_Comm again;
  begin_mpi();
  if (argc > 1 && strcmp(argv[1], "return") == 0)
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  sum("first", 300000, MPI_COMM_WORLD);
  sum("second", 300000, MPI_COMM_WORLD);
  sum("small", 1000, MPI_COMM_WORLD);
  sum("third", 200000, MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  sum("fresh", 20000, again);
  MPI_Comm_free(&again);
  MPI_Finalize();
  return 0;
}
