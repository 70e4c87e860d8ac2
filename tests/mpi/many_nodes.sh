#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# So many nodes that messages take the relayed way, and few that take the direct one, in whole jobs.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
cat >sums.c <<'C'
#include <mpi.h>
#include <stdio.h>
enum { kCount = 4099, kSums = 2 };
static float in[kCount], out[kCount];
static float element(int rank, int sum, int i) {
  return (float)((i * 37 + rank * 101 + sum * 7) % 1009) / 1009.0f - 0.5f;
}
int main(int argc, char **argv) {
  int rank, size;
  unsigned all[4] = {0, 0, 0, 0}; /* hash, its complement, beyond the bound, not exact */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int sum = 0; sum < kSums; ++sum) {
    for (int i = 0; i < kCount; ++i) in[i] = element(rank, sum, i), out[i] = -7;
    MPI_Allreduce(in, out, kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const unsigned char *bytes = (unsigned char *)out;
    for (size_t i = 0; i < sizeof out; ++i) all[0] = (all[0] ^ bytes[i]) * 16777619u;
    /* Half a unit of every addend, 1/255 at most, and half a unit of the sum, size/255 at most. */
    for (int i = 0; i < kCount; ++i) {
      double exact = 0;
      for (int r = 0; r < size; ++r) exact += element(r, sum, i);
      if (!(out[i] - exact < size / 255.0 && exact - out[i] < size / 255.0)) all[2] = 1;
      if (out[i] != exact) all[3] = 1;
    }
  }
  all[1] = ~all[0];
  MPI_Allreduce(MPI_IN_PLACE, all, 4, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s %s %s\n", all[0] == ~all[1] ? "same" : "different", all[2] ? "off" : "close",
           all[3] ? "compressed" : "exact");
  MPI_Finalize();
}
C
"$MPICC" -O1 -o sums sums.c
row() { # NODES WAY
  status=0
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0 SLIMPI_BUCKET=64 SLIMPI_LOG=debug \
    timeout -k 5 "$seconds" "$MPIEXEC" -n "$1" -genv LD_PRELOAD "$preload" ./sums \
    >out.txt 2>err.txt </dev/null || status=$?
  expect "$status" 0 "$1 nodes: ends well"
  expect "$(cat out.txt)" "same close compressed" "$1 nodes: same bytes on all, within the bound"
  way=$(sed -n 's/.*messages between nodes go the \(.*\) way/\1/p' err.txt)
  expect "$way" "$2" "$1 nodes: way"
}
row 5 direct
row 61 relayed
verdict
