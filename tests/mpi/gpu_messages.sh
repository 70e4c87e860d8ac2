#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# On a fast network all ranks take longer messages for long sums of GPU buffers, at the same call:
# with the same bytes, and without memory that was not there before. On the fake driver, with a
# clock that makes any network fast.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_LOG=info
seconds=100
said='messages of long sums are longer'

# run LINES WHAT RANKS PROGRAM [WORD...]; LINES: how often it is said that messages are longer
run() {
  lines=$1 what=$2
  shift 2
  if under "$@" >out.txt 2>err.txt; then
    pass "$what"
  else
    fail "$what" && cat out.txt err.txt
  fi
  expect "$(grep -c "$said" err.txt)" "$lines" "$what: what is said"
}
calls=$top_builddir/tests/gpu/calls sums=$top_builddir/tests/gpu/sums
run 0 "short sums" 2 "$calls" 30 70001
preload=$preload:$top_builddir/tests/helper/.libs/libslow_clock.so
run 0 "short sums on a fast network" 2 "$calls" 30 70001
# Of this count longer messages need more memory than shorter ones.
run 1 "nothing is taken when messages get longer" 2 "$calls" 10 1232795
# It is said once for each way of LONG that has GPU memory on all ranks.
if expensive; then export LONG=5 many=4; else export LONG=1 many=1; fi
if expensive; then
  run $many "the bytes of host buffers, two ranks" 2 "$sums"
fi
run $many "the bytes of host buffers, three ranks" 3 \
  env SLIMPI_BITS=4 SLIMPI_ERROR_FEEDBACK=1 "$sums"
if expensive; then
  run $many "two nodes of two" 4 env SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader "$sums"
fi
verdict
