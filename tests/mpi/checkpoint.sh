#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# State in a checkpoint: a run that resumes from it gives the bits of one that was not interrupted.
# If not all ranks load the state, all ranks drop it.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
mkdir state

go() { # WHAT: its lines in WHAT.txt, its statistics in WHAT.json
  SLIMPI_REPORT=$work/$1.json under 3 "$top_builddir/tests/mpi/checkpoint" "$1" state 2>err.txt |
    sort >"$1.txt"
  expect "$(wc -l <"$1.txt")" 3 "$name: $1"
  [ ! -s err.txt ] || [ "$(wc -l <"$1.txt")" = 3 ] || cat err.txt
}
alike() { # WHAT [CAUSE]: all ranks have the same sums, and one line says that the state was dropped
  expect "$(awk '{ print $2 }' "$1.txt" | sort -u | wc -l)" 1 "$name: $1: ranks have the same sums"
  expect "$(report "$1.json" state_dropped)" 2 "$name: $1: the state of both tensors is dropped"
  expect "$(grep -c "${2-different states of the tensor first}" err.txt)" 1 "$name: $1: said once"
}
check() {
  name=$1
  shift
  export "$@"
  go save
  go load
  same save.txt load.txt "$name: the bits of the run that was not interrupted"
  expect "$(report load.json state_dropped)" 0 "$name: nothing is dropped"
  SLIMPI_TYPES=float,double go unheld
  same save.txt unheld.txt "$name: after sums that MPI has made"
  go without
  cmp -s save.txt without.txt && fail "$name: state does not matter here"
  go refused
  same without.txt refused.txt "$name: what was refused changes nothing"
  go dropped
  same without.txt dropped.txt "$name: a state that was dropped before a sum has used it"
  go one
  alike one
}
check "2 bits" SLIMPI_ALGORITHM=bytegrad SLIMPI_BITS=2 SLIMPI_ERROR_FEEDBACK=1
holds "a request that outlives its communicator" \
  under 2 "$top_builddir/tests/mpi/checkpoint" request state
check "2 bits, two nodes" SLIMPI_RANKS_PER_NODE=2
# With another hierarchy or function, the residuals are of other elements.
for what in flat function; do
  go $what
  alike $what 'state that was set for the tensor first is of a sum with another function'
done
check "powersgd" SLIMPI_ALGORITHM=powersgd SLIMPI_RANKS_PER_NODE=1
go changed
alike changed
