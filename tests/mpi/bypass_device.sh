#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers of calls that the library leaves to MPI may lie in memory that MPI cannot touch: the
# program lives, and gets MPI's own bytes.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_REPORT=$work/report.json UCX_LOG_LEVEL=error
program=$top_builddir/tests/mpi/bypass_device

# Users know this: without the library, the program ends by a segmentation fault.
if plain 2 "$program" >out.txt 2>&1; then
  fail "MPI alone takes the protected device's memory, so this test shows nothing"
fi

avoid_deadly_calls "$program"

run() { # RANKS OPTION=VALUE...
  ranks=$1
  shift
  rm -f report.json
  # Three ranks wait for each other on two cores.
  rounds=
  [ "$ranks" -lt 3 ] || rounds=once
  shows "$ranks ranks, $way, $*: MPI's own bytes" under "$ranks" env "$@" "$program" $rounds
  expect "$(report report.json buffers staged)" "$(sed -n 's/^staged //p' out.txt)" \
    "$ranks ranks, $way, $*: staged calls are counted"
}
run 3 SLIMPI_RANKS_PER_NODE=1
run 2 SLIMPI_RANKS_PER_NODE=0
run 2 SLIMPI_ALGORITHM=off
run 1 SLIMPI_LOG=warn
# With MPI_C_BOOL, MPI_Iallreduce of Open MPI 5 itself returns other bytes than its MPI_Allreduce.
for other in nonblocking persistent; do
  case $top_builddir in */mpis/openmpi*) break ;; esac
  by_way $other
  deeper run 3 SLIMPI_RANKS_PER_NODE=1
  run 2 SLIMPI_ALGORITHM=off
  run 1 SLIMPI_LOG=warn
done
