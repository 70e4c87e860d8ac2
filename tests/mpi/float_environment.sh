#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on one node in floating-point environments of the program's own: every call gives MPI's own
# bytes.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_RANKS_PER_NODE=8
program=$top_builddir/tests/mpi/float_environment

# run RANKS ENVIRONMENT REPEATS COUNT...
run() {
  ranks=$1
  shift
  under "$ranks" "$program" "$@" >out.txt || fail "$ranks ranks: $*"
  cat out.txt
}

run 2 ftz 4 20000
run 3 up 3 99991
run 2 ftz-one 3 16384
run 4 down-one 3 20000
deeper run 5 zero 3 16384
