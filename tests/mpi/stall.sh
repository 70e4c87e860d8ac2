#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_STALL: when a rank comes late, each of the others reports its wait once and names that
# rank, and the sum is right all the same. slimpi-info --attach prints the same meanwhile.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export SLIMPI_ALGORITHM=bytegrad  # the default, but chosen: no line about rounding
program=$top_builddir/tests/mpi/stall
info=$top_builddir/tools/slimpi-info
export SLIMPI_MIN_SIZE=0 SLIMPI_STALL=1

# matches TEXT PATTERN: a basic regular expression for all of the text
matches() { printf '%s\n' "$1" | grep -qx "$2"; }
# reported RANK OF LATE STAGES WHAT: the rank has reported one wait, in one of the stages (a
# pattern), for the late rank alone
reported() {
  line=$(grep "^slimpi\[$1\] warning: waits for" err.txt || :)
  expect "$(printf '%s\n' "$line" | grep -c waits)" 1 "$5: rank $1 reports once"
  holds "$5: rank $1 says where and for whom: $line" matches "$line" \
    ".* on MPI_COMM_WORLD (.*rank $1 of $2), 65536 floats, stage \($4\): not heard from: rank \
$3, which is late.*"
}

# Every rank a node: messages between nodes.
messages='reduce-scatter\|all-gather'
SLIMPI_RANKS_PER_NODE=1 holds "between nodes" under 3 "$program" 2 2 4 2>err.txt
for rank in 0 1; do reported "$rank" 3 2 "$messages" "between nodes"; done
holds "between nodes: call and communicator" \
  grep -q "in call 2 on MPI_COMM_WORLD (communicator 1, rank 0 of 3)" err.txt
expect "$(grep -c waits err.txt)" 2 "between nodes: nobody else reports"

if expensive; then
  # The first call, in which the communicator is made.
  SLIMPI_RANKS_PER_NODE=1 holds "first call" under 3 "$program" 0 1 4 2>err.txt
  for rank in 1 2; do reported "$rank" 3 0 "making the communicator" "first call"; done

  # A call that the ranks agree on first.
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_ERROR_FEEDBACK=1 holds "agreement" \
    under 3 "$program" 1 3 4 2>err.txt
  for rank in 0 2; do reported "$rank" 3 1 agreement "agreement"; done
fi

# Two nodes of two ranks. Rank 2 waits for rank 3 at a barrier, the others for one of these two;
# all three name rank 3 alone.
SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=shm holds "in a node" under 4 "$program" 3 2 4 2>err.txt
reported 2 4 3 "barrier in the node" "in a node"
for rank in 0 1; do reported "$rank" 4 3 "$messages\|barrier in the node" "in a node"; done

# The same as seen by slimpi-info. begin ARGUMENTS...: a job of two ranks; returns when somebody
# has reported a wait
begin() {
  rm -f pid.* err.txt
  SLIMPI_RANKS_PER_NODE=1 under 2 "$program" "$@" 2>err.txt &
  job=$!
  tries=0
  until grep -q waits err.txt 2>/dev/null || [ "$tries" = 200 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
}
begin 1 2 5
"$info" --attach "$(cat pid.0)" >waits.txt 2>&1 || :
"$info" --attach "$(cat pid.0)" --json >waits.json || :
"$info" --attach "$(cat pid.1)" >late.txt 2>&1 || :
holds "the sum after the wait" wait "$job"
call="call 2 on MPI_COMM_WORLD (communicator 1, rank 0 of 2), 65536 floats"
holds "--attach: $(cat waits.txt)" matches "$(cat waits.txt)" "process $(cat pid.0), rank 0 of 2: \
waits for [0-9.]* s in $call, stage \($messages\): not heard from: rank 1"
expect "$(cat late.txt)" \
  "process $(cat pid.1), rank 1 of 2: in the program, or in a call that slimpi leaves to MPI" \
  "--attach of the late rank"
expect "$(report waits.json calls | tr -d ' ' | sed "s/.*'absent'://")" "[1]}]" "--attach --json"

# Nonblocking sums of two communicators: both wait.
begin 1 2 5 3 layer
sleep 1
"$info" --attach "$(cat pid.0)" >waits.txt 2>&1 || :
holds "nonblocking sums after the wait" wait "$job"
for call in "MPI_COMM_WORLD (communicator 1" "layer (communicator 2"; do
  line="waits for [0-9.]* s in call 2 on $call, rank 0 of 2), 65536 floats, stage \
\($messages\): not heard from: rank 1"
  holds "in flight on $call): $(cat waits.txt)" grep -qx "  $line" waits.txt
  holds "reported on $call): $(cat err.txt)" grep -q "^slimpi.0. warning: $line" err.txt
done

# 0 reports nothing, and neither does a wait that is short enough.
SLIMPI_STALL=0 SLIMPI_RANKS_PER_NODE=1 holds "never" under 2 "$program" 1 2 2 2>err.txt
expect "$(cat err.txt)" "" "SLIMPI_STALL=0 reports nothing"
if expensive; then
  SLIMPI_STALL=20 SLIMPI_RANKS_PER_NODE=1 holds "long enough" under 2 "$program" 1 2 3 2>err.txt
  expect "$(cat err.txt)" "" "a wait shorter than SLIMPI_STALL is not reported"
fi
verdict
