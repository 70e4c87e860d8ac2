#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Measures the cost of a call that slimpi passes on: a look at its arguments, a counter, a jump. The
# aim is less than 100 ns more than MPI's own call. `make bench` runs it.
set -eu
library=${1:-$top_builddir/.libs/libslimpi.so}
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
run() { # RANKS
  timeout -k 5 300 "${MPIEXEC:-mpiexec}" -n "$1" -genv LD_PRELOAD "$library" \
    "$top_builddir/tests/bench/calls"
}
echo "one rank"
run 1
echo
echo "one rank, SLIMPI_ALGORITHM=off"
SLIMPI_ALGORITHM=off run 1
echo
echo "two ranks, each a node"
run 2
