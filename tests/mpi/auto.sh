#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_ALGORITHM=auto: ranks that measure unlike times choose alike, and every sum, of a trial or
# not, has the same bytes on all ranks and keeps to the bound.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
cat >sums.c <<'C'
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
enum { kMost = 60001, kSums = 240 };
static float in[kMost], out[kMost];
static float element(int rank, int sum, int i) {
  return (float)((i * 37 + rank * 101 + sum * 7) % 1009) / 1009.0f - 0.5f;
}
int main(int argc, char **argv) {
  int rank, size;
  unsigned all[3] = {0, 0, 0}; /* hash, its complement, beyond the bound */
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int sum = 0; sum < kSums; ++sum) {
    /* Two sizes take turns; each tries MPI's own, bytegrad and allreduce in turns at first. */
    const int count = sum % 2 ? kMost : 20001, candidate = sum / 2 % 3;
    for (int i = 0; i < count; ++i) in[i] = element(rank, sum, i), out[i] = -7;
    /* Whoever is late measures a short time, the others a long one. */
    if (sum < 30 && rank == candidate % size) usleep(3000);
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const unsigned char *bytes = (unsigned char *)out;
    for (size_t i = 0; i < sizeof *out * (size_t)count; ++i)
      all[0] = (all[0] ^ bytes[i]) * 16777619u;
    for (int i = 0; i < count; i += 7) {
      double exact = 0;
      for (int r = 0; r < size; ++r) exact += element(r, sum, i);
      if (!(out[i] - exact < size / 255.0 && exact - out[i] < size / 255.0)) all[2] = 1;
    }
  }
  all[1] = ~all[0];
  MPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s %s\n", all[0] == ~all[1] ? "same" : "different", all[2] ? "off" : "close");
  MPI_Finalize();
}
C
"$MPICC" -std=c99 -O1 -o sums sums.c
row() { # RANKS PER-NODE
  status=0
  SLIMPI_RANKS_PER_NODE=$2 SLIMPI_ALGORITHM=auto SLIMPI_MIN_SIZE=0 SLIMPI_REPORT=report.json \
    timeout -k 5 "$seconds" "$MPIEXEC" -n "$1" -genv LD_PRELOAD "$preload" ./sums \
    >out.txt 2>err.txt </dev/null || status=$?
  expect "$status" 0 "$1 ranks, $2 a node: ends well"
  expect "$(cat out.txt)" "same close" "$1 ranks, $2 a node: same bytes on all, within the bound"
  compressed=$(report report.json calls compressed) passed=$(report report.json calls passed auto)
  expect $((compressed + passed)) 240 "$1 ranks, $2 a node: slimpi or MPI, all were answered"
  # Four rounds of three candidates for each of two sizes.
  holds "$1 ranks, $2 a node: all were tried" test "$compressed" -ge 16 -a "$passed" -ge 8
}
row 2 1
row 3 1
row 4 2
verdict
