/* SPDX-License-Identifier: BSD-3-Clause */
/* stall RANK CALL SECONDS [CALLS [NAME]]: sums 64 Ki floats CALLS times (3). In call number CALL,
 * RANK comes SECONDS late. Each rank writes its process id to the file pid.RANK. With a NAME each
 * call is two nonblocking ones, the second one on a communicator of that name. */
#include "tests/helper/program.h"

enum { count = 64 << 10 };
static float in[count], out[count], named_out[count];

int main(int argc, char** argv) {
  int bad = 0;
  MPI_Comm named;
  MPI_Request requests[2];
  begin_mpi_with(argc > 5 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int calls = argc > 4 ? atoi(argv[4]) : 3;
  char name[32];
  snprintf(name, sizeof name, "pid.%d", g_rank);
  FILE* file = fopen(name, "w");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
  for (int i = 0; i < count; ++i) in[i] = (float)(g_rank + 1);
  MPI_Comm_dup(MPI_COMM_WORLD, &named);
  if (argc > 5) MPI_Comm_set_name(named, argv[5]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int call = 1; call <= calls; ++call) {
    if (g_rank == atoi(argv[1]) && call == atoi(argv[2])) sleep((unsigned)atoi(argv[3]));
    if (argc > 5) {
      MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
      MPI_Iallreduce(in, named_out, count, MPI_FLOAT, MPI_SUM, named, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int i = 0; i < count; ++i) {
      bad += out[i] != (float)(g_size * (g_size + 1) / 2);
      bad += argc > 5 && named_out[i] != out[i];
    }
  }
  MPI_Comm_free(&named);
  if (bad != 0) fprintf(stderr, "rank %d: %d wrong sums\n", g_rank, bad);
  MPI_Finalize();
  return bad != 0;
}
