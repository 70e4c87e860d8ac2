#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A process whose MPI has another ABI than the library was built for: left alone, with one warning.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
need mpicc.openmpi mpiexec.openmpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat >sum.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int n = 100003, rank, bad = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *x = malloc(n * sizeof *x);
  for (int i = 0; i < n; ++i) x[i] = (float)(i % 1000) + rank;
  MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i) bad |= x[i] != 2.0f * (float)(i % 1000) + 1.0f;
  if (rank == 0) puts(bad ? "wrong" : "exact");
  MPI_Finalize();
  return bad;
}
C
mpicc.openmpi -o sum sum.c
status=0
SLIMPI_RANKS_PER_NODE=1 timeout -k 5 "$seconds" mpiexec.openmpi --oversubscribe -n 2 \
  -x LD_PRELOAD="$preload" ./sum >out.txt 2>err.txt </dev/null || status=$?
cat err.txt
expect "$status" 0 "ends well"
expect "$(cat out.txt)" exact "sums are exact"
expect "$(grep -ci slimpi err.txt)" 1 "one warning"
verdict
