#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Nonblocking sums get on while the program computes. SLIMPI_PROGRESS=thread asks for
# MPI_THREAD_MULTIPLE where the program does not; an MPI that gives less makes the sums itself.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT="$work/report.json" UCX_LOG_LEVEL=error
program=$top_builddir/tests/mpi/calls/progress
on_rank=$top_srcdir/tests/helper/scripts/on_rank.sh

# NAME LEFT RANKS COMMAND...: so many of the six sums are left to MPI.
try() {
  name=$1 left=$2 ranks=$3
  shift 3
  rm -f report.json
  under "$ranks" "$@" >out.txt 2>&1 || { fail "$name: exit status $?"; cat out.txt; return; }
  expect "$(report report.json calls passed nonblocking)" "$left" "$name: left to MPI"
}

try "the program has threads" 0 3 "$program" multiple computes
try "one rank has a thread always" 0 3 "$on_rank" 1 SLIMPI_PROGRESS=thread \
  "$program" multiple computes
for level in none funneled; do
  try "progress in a thread, $level" 0 3 env SLIMPI_PROGRESS=thread "$program" "$level" computes
done

# MPI_Waitall begins when the last sum is made and its request not complete yet.
if "${MPICC:-mpicc}" -shared -fPIC -o late.so "$top_srcdir/tests/helper/mpi/late_completion.c"; then
  alone=$preload
  preload=$preload:$work/late.so
  try "a request is completed late" 0 2 "$program" multiple computes
  preload=$alone
fi

# Two addends have the same sum whoever adds them.
export SLIMPI_ALGORITHM=allreduce
try "an MPI without threads" 6 2 env SLIMPI_PROGRESS=thread "$program" hidden waits
line="SLIMPI_PROGRESS=thread needs MPI_THREAD_MULTIPLE, which .* nonblocking sums are left to MPI"
expect "$(grep -c "$line" out.txt)" 1 "an MPI without threads: one line"
try "one rank alone has threads" 6 2 env SLIMPI_PROGRESS=calls \
  "$on_rank" 1 SLIMPI_PROGRESS=thread "$program" none waits
try "MPI_Init asks for threads" 0 2 "$program" none waits
