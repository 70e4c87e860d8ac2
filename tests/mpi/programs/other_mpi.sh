#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI 4.1: functions that it lacks. Its sums are those of mpi/programs/every_mpi.sh.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
need mpicc.openmpi mpiexec.openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# mpi4py takes what it finds, which is then slimpi's.
cat >found.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#define COUNT 50000
#pragma weak MPI_Allreduce_c
#pragma weak MPI_Iallreduce_c
#pragma weak MPI_Allreduce_init_c
int MPI_Allreduce_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Iallreduce_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                     MPI_Request *);
int MPI_Allreduce_init_c(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                         MPI_Request *);
static float in[COUNT], out[COUNT];
static void check(const char *what, int code) {
  int good = code == MPI_SUCCESS, rank;
  for (int i = 0; i < COUNT; ++i) good &= out[i] == 2.0f * (float)(i % 1000) + 1.0f;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!good || rank == 0) printf("%s %s\n", what, good ? "exact" : "wrong");
  memset(out, 0, sizeof out);
}
int main(int argc, char **argv) {
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request;
  int rank, code;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  for (int i = 0; i < COUNT; ++i) in[i] = (float)(i % 1000) + (float)rank;
  if (MPI_Allreduce_c) {
    check("sum", MPI_Allreduce_c(in, out, COUNT, MPI_FLOAT, MPI_SUM, world));
    code = MPI_Allreduce_c(in, out, (MPI_Count)3 << 30, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
    if (rank == 0) puts(code == MPI_ERR_COUNT ? "too many refused" : "too many taken");
  }
  if (MPI_Iallreduce_c) {
    MPI_Iallreduce_c(in, out, COUNT, MPI_FLOAT, MPI_SUM, world, &request);
    check("nonblocking", MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  if (MPI_Allreduce_init_c) {
    MPI_Allreduce_init_c(in, out, COUNT, MPI_FLOAT, MPI_SUM, world, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    check("persistent", MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Request_free(&request);
  }
  MPI_Finalize();
  return 0;
}
C
mpicc.openmpi -w -o found found.c
status=0
timeout -k 5 "$seconds" mpiexec.openmpi --oversubscribe -n 2 -x LD_PRELOAD="$preload" ./found \
  >out.txt 2>err.txt </dev/null || status=$?
cat err.txt
expect "$status $(grep -c warning err.txt)" "0 0" "what it lacks: ends well, without a warning"
expect "$(cat out.txt)" "sum exact
too many refused
nonblocking exact
persistent exact" "what it lacks: done by what it has"
