#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Nonblocking float sums are taken like blocking ones, and every way to complete them gives the
# bytes of the blocking call.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
program=$top_builddir/tests/mpi/calls/nonblocking
threads=$top_builddir/tests/mpi/calls/nonblocking_threads
errors=$top_builddir/tests/mpi/calls/nonblocking_errors

# NAME RANKS RANKS_PER_NODE [PROGRAM]: compressed sums as many as the program makes.
try() {
  name=$1 ranks=$2 per_node=$3
  SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_REPORT=$work/report.json under "$ranks" "${4-$program}" \
    >out.txt 2>&1 || { fail "$name: exit status $?"; cat out.txt; return; }
  expect "$(grep PASS out.txt)" "PASS nonblocking sums have the bytes of blocking ones" "$name"
  expect "$(report report.json calls passed nonblocking)" 0 "$name: none is left to MPI"
}

try "each rank a node" 3 1
try "two nodes of two ranks" 4 2
SLIMPI_ALGORITHM=fp16 try "fp16" 3 1
try "threads" 3 1 "$threads"
# Without this limit the main thread gets all the stack that it asks for, and other threads usually
# get 2 MiB.
limit=$(ulimit -S -s)
if [ -z "$sanitizer" ] && ulimit -S -s unlimited 2>/dev/null; then
  try "threads, stacks without a limit" 3 1 "$threads"
  ulimit -S -s "$limit"
fi
SLIMPI_PROGRESS=thread try "threads, progress in a thread, two nodes" 4 2 "$threads"
SLIMPI_ALGORITHM=allreduce SLIMPI_PROGRESS=thread try "allreduce, progress in a thread" 3 1

# The buffers lie in memory that MPI cannot touch. Sums that are left to MPI are made on copies.
program=$top_builddir/tests/mpi/calls/nonblocking_protected
try "the protected device" 3 1
for ranks in 1 3; do
  SLIMPI_ALGORITHM=off holds "the protected device, $ranks ranks, left to MPI" \
    under $ranks "$program" left
done
program=$top_builddir/tests/mpi/calls/nonblocking

for layout in "3 1" "4 2"; do
  SLIMPI_RANKS_PER_NODE=${layout#* } holds "errors, MPI_Cancel, MPI_Request_free: $layout" \
    under "${layout% *}" "$errors" 2>errors.txt
done

if "${MPICC:-mpicc}" -shared -fPIC -o after.so "$top_srcdir/tests/helper/mpi/after_wait.c"; then
  alone=$preload
  preload=$preload:$work/after.so
  SLIMPI_RANKS_PER_NODE=1 shows "a handle is used again before the error of its sum" \
    under 2 "$errors" reused
  preload=$alone
fi

# Fibers have small stacks. A sanitizer needs more memory.
[ -n "$sanitizer" ] || SLIMPI_RANKS_PER_NODE=1 holds "sums with little memory" \
  under 2 "$errors" limited 2>errors.txt

# A strategy that blocks in MPI: the ranks come to the strategies of several sums in different
# orders. A hook that fails in the second call of each communicator.
if hook hook failing && hook blocks failing -DBLOCKS; then
  SLIMPI_ALGORITHM=hook:$work/blocks.so try "a strategy" 3 1
  export HOOK_FAILS="encode 2 1"
  SLIMPI_ALGORITHM=hook:$work/hook.so SLIMPI_RANKS_PER_NODE=1 \
    holds "errors of persistent sums" under 3 "$errors" failing
  unset HOOK_FAILS
  hook starts failing -DSTARTS
  SLIMPI_ALGORITHM=hook:$work/starts.so SLIMPI_RANKS_PER_NODE=1 \
    holds "a hook starts a persistent sum" under 3 "$errors" starting
fi

# The algorithms below draw by the number of the call, or keep state.
for algorithm in qsgd powersgd decentralized low_precision_decentralized; do
  for way in "" nonblocking; do
    SLIMPI_ALGORITHM=$algorithm SLIMPI_START=1 SLIMPI_RANKS_PER_NODE=1 under 3 "$program" digest \
      $way >"digest$way.txt" 2>&1 || fail "$algorithm $way: exit status $?"
  done
  same digest.txt digestnonblocking.txt "$algorithm: a nonblocking sum has the blocking one's bytes"
done

# An estimate counts nonblocking sums, also where the ranks have not met: the nodes are then those
# that the option says.
SLIMPI_ESTIMATE=$work/estimate.json SLIMPI_RANKS_PER_NODE=1 under 3 "$program" digest nonblocking \
  >digest.txt || fail "estimate: exit status $?"
holds "the estimate counts nonblocking sums" "$PYTHON" -c '
import json
rows = [row for row in json.load(open("estimate.json"))["rows"] if not row["blocking"]]
assert [(row["calls"], row["reason"]) for row in rows] == [(24, None)], rows
assert 0 < rows[0]["bytes"]["8"] < rows[0]["bytes"]["plain"], rows'
# A persistent sum that the options leave to MPI is counted once.
SLIMPI_ESTIMATE=$work/estimate.json SLIMPI_REPORT=$work/report.json SLIMPI_RANKS_PER_NODE=1 \
  under 2 "$steps" multiple persistent:100 finalize >out.txt ||
  fail "estimate of a persistent sum: exit status $?"
expect "$(report report.json calls passed small)" 1 "the estimate counts a persistent sum once"

# auto tries its candidates, four times each, where all sums are nonblocking.
for layout in "3 1"; do
  SLIMPI_ALGORITHM=auto SLIMPI_RANKS_PER_NODE=${layout#* } SLIMPI_REPORT=$work/report.json \
    under "${layout% *}" "$program" digest nonblocking >digest.txt || fail "auto: exit status $?"
  holds "auto tries all its candidates: $layout" "$PYTHON" -c '
import json
rows = json.load(open("report.json"))["auto"]
assert len(rows) == 1 and len(rows[0]["candidates"]) > 1, rows
assert all(each["calls"] >= 4 for each in rows[0]["candidates"].values()), rows'
done
