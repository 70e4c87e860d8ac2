#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_SELFTEST finds an MPI that changes a bit of a message, before the first sum and on all
# ranks, which name the element and the ranks. With a right MPI it prints nothing and changes no
# result.
. "$top_srcdir/tests/helper/mpi.sh"
seconds=60
program=$top_builddir/tests/mpi/steps
without_faults=${preload:-}
export SLIMPI_BITS=8 SLIMPI_MIN_SIZE=0 UCX_LOG_LEVEL=error

run() { # RANKS FAULT STEP...
  ranks=$1 fault=$2
  shift 2
  preload=$without_faults:$top_builddir/tests/mpi/.libs/libfaults.so TEST_FAULT=$fault \
    under "$ranks" "$program" init return "$@" finalize >out.txt 2>err.txt || fail "$*: status $?"
}
# said RANKS PATTERN WHAT: so many ranks got this error, and one line on stderr has it
said() {
  expect "$(grep -c "^[0-9]* [a-z]*:[0-9]* error .*SLIMPI_SELFTEST: $2" out.txt)" "$1" "$3"
  expect "$(grep -c "slimpi\[0\] error: SLIMPI_SELFTEST: $2" err.txt)" 1 "$3: one line"
}

# With the test, the bytes are the same, and slimpi prints nothing.
for nodes in 1 2; do
  export SLIMPI_RANKS_PER_NODE=$nodes
  steps="sum:40000 block:40000 scatter:40000,100 sum:1000 dup sum:50000"
  # shellcheck disable=SC2086
  SLIMPI_REPORT=$work/without.json run 4 none $steps
  sort out.txt >without.txt
  for often in first 1 3; do
    # shellcheck disable=SC2086
    SLIMPI_SELFTEST=$often SLIMPI_REPORT=$work/with.json run 4 none $steps
    sort out.txt >with.txt
    expect "$(report with.json bytes sent)" "$(report without.json bytes sent)" \
      "$often, $nodes ranks a node: bytes of the sums alone"
    same with.txt without.txt "$often, $nodes ranks a node: the same results"
    expect "$(cat err.txt)" "" "$often, $nodes ranks a node: silence"
  done
done

# The first message of a rank is a part of a chunk that another rank adds. With three ranks, the
# third message is the rank's own finished chunk; a reduce-scatter has none.
export SLIMPI_SELFTEST=first SLIMPI_RANKS_PER_NODE=1
element='element [0-9]* (from byte [0-9]*) of [0-9]* known floats is .* (0x[0-9a-f]*) on rank'
for step in block:42000 scatter:42000; do
  run 3 flipped:1:1 "$step" "$step"
  said 3 "$element [02], .* wrong on rank [02]; rank [02] adds it, and what came to it is wrong" \
    "$step: what is added"
  expect "$(grep -c " $step near" out.txt)" 3 "$step: the next sum tests again, and is right"
done
for step in sum:40000 isum:40000; do
  MULTIPLE=1 run 3 flipped:1:1 "$step" "$step"
  said 3 "$element 0, .* wrong on rank 0 1 2; rank [02] adds it, and what came to it is wrong" \
    "$step: what is added"
  expect "$(grep -c " $step near" out.txt)" 3 "$step: the next sum tests again, and is right"
  MULTIPLE=1 run 3 flipped:1:3 "$step" "$step"
  said 3 "$element [02], .* wrong on rank [02]; rank 1 adds it, and has it right" \
    "$step: what is sent to all"
done
# Without the test, no rank notices the changed bit.
SLIMPI_SELFTEST=off run 3 flipped:1:1 sum:40000
expect "$(cat err.txt)$(grep error out.txt)" "" "off: nothing is said"
# The test works between nodes of two ranks, and at every second sum.
SLIMPI_RANKS_PER_NODE=2 run 4 flipped:3:1 sum:40000
said 4 "$element 0, .* wrong on rank 0 1 2 3; rank 1 adds it" "two ranks a node"
SLIMPI_SELFTEST=2 SLIMPI_ALGORITHM=fp16 run 2 flipped:0:7 sum:4000 sum:4000 sum:4000
expect "$(grep -c ' sum:4000 near\| sum:4000 exact' out.txt)" 4 "every second sum: two are right"
said 2 "$element" "every second sum: the third tests again"
