#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Which buffer is which: state follows a program's buffers where they can be told apart, is dropped
# by all ranks together where they disagree, and never piles up.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=2 SLIMPI_ERROR_FEEDBACK=1
slot=$((5000 * 4))  # bytes of one tensor's residual

slots() { # MODE kept|lost CALLS_PER_STEP
  SLIMPI_CALLS_PER_STEP=$3 SLIMPI_REPORT=$work/$1.json \
    under "${ranks-3}" "$top_builddir/tests/mpi/tensor_state" "$1" "$2" 2>errors.txt ||
      { cat errors.txt; return 1; }
}
state() { # MODE BYTES DROPPED: what the report says, and how often the ranks were told
  expect "$(report "$1.json" memory state)" "$2" "$1: bytes of state"
  expect "$(report "$1.json" state_dropped)" "$3" "$1: times that state was dropped"
  said=1
  [ "$3" != 0 ] || said=0
  expect "$(grep -c 'different orders' errors.txt)" $said "$1: said once where it was, else never"
}

holds "buffers in turn" slots reuse kept 0
state reuse $((2 * slot)) 0
holds "new buffers at every step, named by the order of calls" slots anew kept 2
state anew $((2 * slot)) 0
holds "new buffers at every step, named by the program" slots anew_named kept 0
state anew_named $((2 * slot)) 0
holds "new buffers at every step, unnamed" slots anew lost 0
state anew $((32 * slot)) 0
holds "the report: what is lost where buffers are new" "$PYTHON" -c '
import json
state = json.load(open("anew.json"))["state"]
assert state == {"calls": 120, "first_times": 120, "never_reused": 120}, state'
expect "$(report reuse.json state first_times)" 2 "buffers in turn: met once each"
holds "one buffer, two counts" slots counts kept 0
state counts $((slot + slot / 2)) 0
holds "one buffer, two tensors, named" slots one_buffer kept 2
state one_buffer $((2 * slot)) 0
# Sums that a rule leaves to MPI, or to another algorithm, have their place in the step.
for algorithm in off allreduce; do
  echo "* 12K * $algorithm *" >rules.txt
  SLIMPI_RULES=$work/rules.txt SLIMPI_ERROR_FEEDBACK=1 \
    holds "named, half of the sums by $algorithm" slots counts kept 2
  state counts $slot 0
done
holds "ranks that disagree for ever" slots disagree lost 0
state disagree $slot "$(report disagree.json state_dropped)"
holds "dropped at every call but the first" test "$(report disagree.json state_dropped)" -ge 100
holds "ranks that disagree, named" slots disagree kept 2
state disagree $((2 * slot)) 0
holds "ranks that disagree once, then find together" slots swap kept 0
state swap $((2 * slot)) 2
# A state for each function, counts and hierarchy, with two ranks on each of two nodes: each rank's
# residual is of other elements with each. Rank 0 has five buckets of an allreduce, and of a
# reduce-scatter the blocks of two ranks.
turns() { # MODE CALLS_PER_STEP STATES BYTES
  SLIMPI_RANKS_PER_NODE=2 ranks=4 holds "in turn: $1, $2 calls a step" slots "$1" kept "$2"
  expect "$(report "$1.json" state first_times)" "$3" "$1: states"
  state "$1" "$4" 0
}
both=$((2 * (5 * 512 * 4 + slot / 2))) two=$((2 * (slot / 2 + slot * 3 / 4)))
for mode in functions functions_named; do turns $mode 0 4 $both; done
for mode in blocks blocks_named blocks_nonblocking; do turns $mode 0 4 $two; done
turns functions 2 4 $both
SLIMPI_HIERARCHY=leader turns blocks 0 4 $((4 * slot))
# A rank with an empty block knows the tensor by no address, but its shard still has a residual.
for mode in empty empty_nonblocking; do turns $mode 0 2 $((2 * slot * 3 / 4)); done
# A step has one more sum, with another count: all positions are dropped once.
holds "an extra sum, named by the order of calls" slots extra kept 2
expect "$(report extra.json state_dropped)" 1 "extra: times that all state was dropped"
expect "$(grep -c "another count" errors.txt)" 1 "extra: said once"
holds "sums that are made while slimpi is off have no place in a step" slots paused kept 2
holds "nonblocking sums that go to MPI for lack of threads" slots single kept 3
holds "a communicator of its own" slots freed kept 0
state freed 0 0

# The program has more buffers than may keep arrays at first, and uses each again. With the
# hierarchy `leader` and two nodes of two ranks, only one rank of each node keeps arrays; the other
# ranks must free the same states.
leader() { # ALGORITHM
  SLIMPI_ALGORITHM=$1 SLIMPI_HIERARCHY=leader SLIMPI_RANKS_PER_NODE=2 SLIMPI_CALLS_PER_STEP=40 \
    SLIMPI_REPORT=$work/leader.json \
    under 4 "$top_builddir/tests/mpi/steps" init many:120 finalize 2>errors.txt
}
for algorithm in bytegrad low_precision_decentralized; do
  holds "$algorithm, hierarchy leader, 40 buffers" leader "$algorithm"
  expect "$(report leader.json calls compressed)" 120 "$algorithm, leader: calls taken over"
  expect "$(report leader.json state_dropped)" 0 "$algorithm, leader: times that state was dropped"
  expect "$(cat errors.txt)" "" "$algorithm, leader: nothing is said"
done
