#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Functions of slimpi.h that a program may call before MPI is loaded, before MPI_Init and after
# MPI_Finalize; and MPI functions at such times, which MPI refuses in its own words.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
: "${CC:=cc}"
[ -n "${MPICC:-}" ] || skip "configure found no mpicc"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error SLIMPI_REPORT=$work/report.json
export SLIMPI_ALGORITHM=powersgd SLIMPI_START=0 SLIMPI_MIN_SIZE=0
source=$top_srcdir/tests/mpi/calls/early.c
seconds=60

"$MPICC" -O1 -I"$top_srcdir/include" -o early "$source" -ldl
"$MPICC" -O1 -I"$top_srcdir/include" -DPART -shared -fPIC -o part.so "$source"
$CC -O1 -I"$top_srcdir/include" -DLATE -o late "$source" -ldl
mpi=$(ldd part.so | awk '/libmpi/ { print $3; exit }')

shows "slimpi.h before MPI_Init and after MPI_Finalize" under 2 ./early api
expect "$(report report.json calls float32)" 1 "and the sum between is slimpi's"
rm -f report.json
shows "slimpi.h before MPI is loaded" under 2 ./late api "$mpi" "$work/part.so"
expect "$(report report.json calls float32)" 1 "and the sum in the MPI that is loaded later"

# The process id, addresses and other words that may differ from run to run are left out.
words() { grep -v -e PID -e '^=' "$1" | sed 's/[0-9a-fx]\{6,\}/N/g; s/:[0-9]*\]/:N]/'; }
# The program runs without mpiexec: mpiexec of MPICH dies of SIGPIPE where a program ends before the
# end of its own input was passed on.
alone() { timeout -k 5 "$seconds" env LD_PRELOAD="$1" ./early "$when" "$call"; }
for when in before after; do
  for call in allreduce iallreduce set_info 0 1 2; do
    plain_status=0 under_status=0
    alone "" >plain.txt 2>&1 || plain_status=$?
    alone "$preload" >under.txt 2>&1 || under_status=$?
    words plain.txt >plain.words
    words under.txt >under.words
    expect "$under_status" "$plain_status" "$call $when: MPI's own exit status"
    same plain.words under.words "$call $when: MPI's own words"
  done
done
