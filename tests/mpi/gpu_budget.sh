#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# How many functions of CUDA's driver a sum of GPU buffers calls, on the fake driver, which counts.
# The limits are what was counted; lower them when the code needs fewer.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
seconds=200
budget() { # NODES MIB CALLS
  holds "a sum of $2 MiB between $1 nodes: at most $3 calls" \
    under "$1" "$top_builddir/tests/gpu/budget" "$2" "$3"
}
budget 2 64 715
budget 4 64 1523
verdict
