/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that survives the loss of a rank by ULFM, MPI's fault tolerance: it gets ULFM's error
 * classes from a sum, revokes the communicator, agrees, shrinks it, and sums on. Usage:
 *   ulfm         the exit status says whether this MPI has ULFM
 *   ulfm dies    the last rank is killed before a sum
 *   ulfm revokes the last rank revokes the communicator in place of the sum
 * Each rank that survives prints how many of its later sums were compressed. */
#include "tests/helper/base/program.h"

#include <signal.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
#define COUNT 100000
static float x[COUNT];

/* Returns the error class of a sum; -1 if the values are wrong. */
static int sum(MPI_Comm comm) {
  int rank, size, class = MPI_SUCCESS;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  fill_whole(x, COUNT, 0, rank);
  const int code = MPI_Allreduce(MPI_IN_PLACE, x, COUNT, MPI_FLOAT, MPI_SUM, comm);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return code == MPI_SUCCESS && error_of_whole(x, COUNT, 0, size) > size ? -1 : class;
}

static int is_of_ulfm(int class) {
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
}

int main(int argc, char** argv) {
  MPI_Comm comm, shrunk;
  int flag = 1, size = 0;
  if (argc == 1) return 0;
  begin_mpi();
  const int dies = strcmp(argv[1], "dies") == 0, last = g_rank == g_size - 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  check(sum(comm) == MPI_SUCCESS, "the first sum");
  MPI_Barrier(MPI_COMM_WORLD); /* all ranks have this sum before one dies or revokes */
  if (dies && last) raise(SIGKILL);
  if (dies || !last) {
    const int class = sum(comm);
    check(dies ? is_of_ulfm(class) : class == MPIX_ERR_REVOKED, "the class of the error");
  }
  MPIX_Comm_revoke(comm);
  check(is_of_ulfm(sum(comm)), "the class of the error of a later sum");
  MPIX_Comm_agree(comm, &flag);
  check(MPIX_Comm_shrink(comm, &shrunk) == MPI_SUCCESS, "shrink");
  MPI_Comm_size(shrunk, &size);
  check(size == g_size - dies, "the size of the shrunk communicator");
  const uint64_t before = compressed_calls();
  for (int i = 0; i < 3; ++i) check(sum(shrunk) == MPI_SUCCESS, "a sum after the loss");
  printf("rank %d: %d compressed\n", g_rank, (int)(compressed_calls() - before));
  MPI_Comm_free(&shrunk);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return g_failures != 0;
}
#else
int main(void) {
  return 1;
}
#endif
