#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ULFM: a program that loses a rank, or revokes its communicator, gets ULFM's error classes from
# sums and continues with a communicator whose sums are compressed. Only under Open MPI 5.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
program=$top_builddir/tests/mpi/failures/ulfm
"$program" || skip "this MPI has no ULFM"
MPIEXEC="$MPIEXEC --with-ft=ulfm"
seconds=60

survives() { # WHAT SURVIVORS RANKS HOW [COMPRESSED]
  under "$3" "$program" "$4" >out.txt 2>err.txt || : # the status is that of the rank that dies
  expect "$(grep -c "^rank [0-9]: ${5-3} compressed" out.txt)" "$2" "$1: the others sum on"
  expect "$(grep ': FAIL ' err.txt)" "" "$1: error classes"
}
SLIMPI_RANKS_PER_NODE=1 survives "a rank dies" 3 4 dies
SLIMPI_RANKS_PER_NODE=1 survives "revoked" 3 3 revokes
by_way nonblocking
# The ranks meet in a blocking sum, so MPI makes these.
SLIMPI_RANKS_PER_NODE=1 survives "nonblocking, a rank dies" 3 4 dies 0
SLIMPI_RANKS_PER_NODE=1 survives "nonblocking, revoked" 3 3 revokes
by_way blocking
SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=shm survives "in a node, a rank dies" 3 4 dies
SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=shm survives "in a node, revoked" 4 4 revokes
