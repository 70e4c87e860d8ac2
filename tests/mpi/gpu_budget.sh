#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How many functions of CUDA's driver a sum of GPU buffers calls, on the fake driver, which counts.
# The limits are what was counted and a little more: a stream that was seen idle waits anew for the
# program's own work, and how often it is seen so is chance. Lower them when the code needs fewer.
. "$top_srcdir/tests/helper/mpi.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
seconds=200
budget() { # NODES MIB CALLS [COPIES]
  what="a sum of $2 MiB between $1 nodes: at most $3 calls${4:+, $4 of them copies}"
  ranks=$1
  shift
  holds "$what" under "$ranks" "$top_builddir/tests/gpu/budget" "$@"
}
budget 2 64 660 0
if expensive; then budget 4 64 760 0; fi
# Kernels use the messages in pinned memory.
budget 2 1 65 0
budget 4 1 110 0
