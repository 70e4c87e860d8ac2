#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on one node in floating-point environments of the program's own, and under MPI's other
# algorithms: every call gives MPI's own bytes, whoever adds.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export SLIMPI_RANKS_PER_NODE=8
program=$top_builddir/tests/mpi/float_environment

# run RANKS ENVIRONMENT REPEATS COUNT...
run() {
  ranks=$1
  shift
  under "$ranks" "$program" "$@" >out.txt || fail "$SLIMPI_INTRA, $ranks ranks: $*"
  cat out.txt
}

export SLIMPI_INTRA=shm
run 2 ftz 40 20000
run 2 up 8 16384 99991
run 2 ftz-one 8 16384
run 3 down 8 16384
run 4 down-one 6 20000
run 4 default 5 300007
run 5 zero 6 16384
# Such sums are MPI's own.
SLIMPI_INTRA=mpi run 4 down-one 6 20000
export SLIMPI_INTRA=shm

# The library finds out that MPI adds in another order, from some call on in the last case.
export MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=nb MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM=tsp_ring
run 4 default 6 20000
unset MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM
MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=recursive_doubling
run 3 default 6 16384
unset MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM
export MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM=release_gather
run 4 default 8 16384
verdict
