/* SPDX-License-Identifier: BSD-3-Clause */
/* erroneous [CALLS] COUNT...: an erroneous program. All ranks sum 65536 floats, CALLS times (1).
 * Then rank r sums the number of floats that its argument says. Letters behind it: d, doubles; s,
 * by MPI_Reduce_scatter_block; v, by MPI_Reduce_scatter; i, by the nonblocking function; p, by the
 * persistent one.
 * Errors of that call are printed and end the rank. */
#include "tests/helper/program.h"

#include "tests/helper/mpi4.h"

int main(int argc, char** argv) {
  begin_mpi();
  if (argc != g_size + 1 && argc != g_size + 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const int calls = argc == g_size + 2 ? atoi(argv[1]) : 1;
  const char* const mine = argv[argc - g_size + g_rank];
  const int count = atoi(mine), first = 65536;
  const int doubles = strchr(mine, 'd') != NULL;
  const size_t bytes = sizeof(double) * (size_t)(count > first ? count : first);
  void *in = calloc(bytes, 1), *out = calloc(bytes, 1);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "gradients");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < calls; ++i) MPI_Allreduce(in, out, first, MPI_FLOAT, MPI_SUM, comm);
  const MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_FLOAT;
  const int later = strchr(mine, 'i') != NULL, each = count / g_size;
  int counts[16];
  for (int i = 0; i < g_size; ++i) counts[i] = each;
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  if (strchr(mine, 's') != NULL)
    code = later ? MPI_Ireduce_scatter_block(in, out, each, type, MPI_SUM, comm, &request)
                 : MPI_Reduce_scatter_block(in, out, each, type, MPI_SUM, comm);
  else if (strchr(mine, 'v') != NULL)
    code = later ? MPI_Ireduce_scatter(in, out, counts, type, MPI_SUM, comm, &request)
                 : MPI_Reduce_scatter(in, out, counts, type, MPI_SUM, comm);
#if HAS_PERSISTENT_SUMS
  else if (strchr(mine, 'p') != NULL)
    code = MPI_Allreduce_init(in, out, count, type, MPI_SUM, comm, MPI_INFO_NULL, &request);
#endif
  else
    code = later ? MPI_Iallreduce(in, out, count, type, MPI_SUM, comm, &request)
                 : MPI_Allreduce(in, out, count, type, MPI_SUM, comm);
  if (code == MPI_SUCCESS && later) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  char text[MPI_MAX_ERROR_STRING + 1] = "no error";
  int length;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  printf("rank %d: %s\n", g_rank, text);
  fflush(stdout);
  MPI_Comm_free(&comm);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
