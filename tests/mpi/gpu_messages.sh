#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Long sums of GPU buffers, of many messages, have the bytes of host buffers. On the fake driver.
. "$top_srcdir/tests/helper/mpi.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
seconds=100
sums=$top_builddir/tests/gpu/sums
if expensive; then export LONG=5; else export LONG=1; fi
holds "three ranks" under 3 env SLIMPI_BITS=4 SLIMPI_ERROR_FEEDBACK=1 "$sums"
if expensive; then
  holds "two ranks" under 2 "$sums"
  holds "two nodes of two" under 4 env SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader "$sums"
fi
