#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in the memory of a GPU give the bytes of host buffers: the whole library with the part for
# GPU memory, on the stand-in for CUDA's driver.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -e "$top_builddir/tests/standin/libcuda.so.1" ] || skip "the part for GPU memory is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0

run() {
  ranks=$1 per_node=$2 hierarchy=$3 algorithm=$4 bits=$5 bucket=$6 feedback=$7
  what="$ranks ranks, $per_node a node, $hierarchy, $algorithm, $bits bits in $bucket, $feedback"
  if SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_HIERARCHY=$hierarchy SLIMPI_ALGORITHM=$algorithm \
    SLIMPI_BITS=$bits SLIMPI_BUCKET=$bucket SLIMPI_ERROR_FEEDBACK=$feedback under "$ranks" \
    "$top_builddir/tests/gpu/sums"; then
    pass "$what"
  else
    fail "$what"
  fi
}

run 2 1 flat bytegrad 8 2048 0
run 3 1 flat bytegrad 3 512 1
run 4 2 leader bytegrad 4 0 0
run 4 2 sharded bytegrad 8 4096 1
run 3 1 flat qsgd 8 2048 0
run 2 1 flat fp16 8 2048 0
run 3 2 sharded allreduce 8 2048 0
what="nothing is taken after the first calls, and nothing is left behind"
if SLIMPI_RANKS_PER_NODE=1 under 2 "$top_builddir/tests/gpu/calls" 30; then
  pass "$what"
else
  fail "$what"
fi
verdict
