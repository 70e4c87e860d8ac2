#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in memory that neither the program nor MPI can touch give the bytes of host buffers.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export SLIMPI_MIN_SIZE=0

run() {
  ranks=$1 per_node=$2 hierarchy=$3 algorithm=$4 bits=$5 feedback=$6
  what="$ranks ranks, $per_node a node, $hierarchy, $algorithm, $bits bits, feedback $feedback"
  if SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_HIERARCHY=$hierarchy SLIMPI_ALGORITHM=$algorithm \
    SLIMPI_BITS=$bits SLIMPI_ERROR_FEEDBACK=$feedback under "$ranks" \
    "$top_builddir/tests/mpi/guarded"; then
    pass "$what"
  else
    fail "$what"
  fi
}

run 2 1 flat bytegrad 8 0
run 3 1 flat bytegrad 3 1
run 4 2 leader bytegrad 4 0
run 4 2 sharded bytegrad 8 1
run 3 1 flat qsgd 8 0
run 2 1 flat fp16 8 0
run 3 2 sharded allreduce 8 0
verdict
