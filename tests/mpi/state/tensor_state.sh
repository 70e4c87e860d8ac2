#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Which buffer is which: state follows a program's buffers where they can be told apart, is dropped
# by all ranks together where they disagree, and never piles up.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BITS=2 SLIMPI_ERROR_FEEDBACK=1
export SLIMPI_CALLS_PER_STEP=0
slot=$((5000 * 4))  # bytes of one tensor's residual
for algorithm in off allreduce; do echo "* 12K * $algorithm *" >$algorithm.txt; done

# Whether the state is kept or lost, its bytes, how often the ranks dropped it, and that they are
# told so once.
never='state_dropped=0; err 0 different orders' once='err 1 different orders'
rows <<END
buffers in turn, met once each          | 3 |  | tensor_state reuse kept \
  | memory.state=$((2 * slot)); state.first_times=2; $never
new buffers, by the order of calls      | 3 | calls_per_step=2 | tensor_state anew kept \
  | memory.state=$((2 * slot)); $never
new buffers, named                      | 3 |  | tensor_state anew_named kept \
  | memory.state=$((2 * slot)); $never
new buffers, unnamed                    | 3 |  | tensor_state anew lost \
  | memory.state=$((32 * slot)); $never; state.calls=120; state.first_times=120; \
    state.never_reused=120
one buffer, two counts                  | 3 |  | tensor_state counts kept \
  | memory.state=$((slot + slot / 2)); $never
one buffer, two tensors, named          | 3 | calls_per_step=2 | tensor_state one_buffer kept \
  | memory.state=$((2 * slot)); $never
# Sums that a rule leaves to MPI, or to another algorithm, have their place in the step.
named, half of the sums by MPI          | 3 | calls_per_step=2 rules=$work/off.txt \
  | tensor_state counts kept | memory.state=$slot; $never
named, half by allreduce                | 3 | calls_per_step=2 rules=$work/allreduce.txt \
  | tensor_state counts kept | memory.state=$slot; $never
ranks that always disagree              | 3 |  | tensor_state disagree lost \
  | memory.state=$slot; state_dropped>=100; $once
ranks that disagree, named              | 3 | calls_per_step=2 | tensor_state disagree kept \
  | memory.state=$((2 * slot)); $never
ranks that disagree once                | 3 |  | tensor_state swap kept \
  | memory.state=$((2 * slot)); state_dropped=2; $once
# A step has one more sum, with another count: all positions are dropped once.
an extra sum, by the order of calls     | 3 | calls_per_step=2 | tensor_state extra kept \
  | state_dropped=1; err 1 another count
sums while slimpi is off have no place  | 3 | calls_per_step=2 | tensor_state paused kept
sums that go to MPI for lack of threads | 3 | calls_per_step=3 | tensor_state single kept
a communicator of its own               | 3 |  | tensor_state freed kept | memory.state=0; $never
END

# A state for each function, counts and hierarchy, with two ranks on each of two nodes: each rank's
# residual is of other elements with each. Rank 0 has five buckets of an allreduce, and of a
# reduce-scatter the blocks of two ranks. A rank with an empty block knows the tensor by no address,
# but its shard still has a residual.
both=$((2 * (5 * 512 * 4 + slot / 2))) two=$((2 * (slot / 2 + slot * 3 / 4)))
three=$((2 * slot * 3 / 4))
rows "$never" <<END
functions in turn               | 4/2 |  | tensor_state functions kept \
  | state.first_times=4; memory.state=$both
functions, named                | 4/2 |  | tensor_state functions_named kept \
  | state.first_times=4; memory.state=$both
functions, by the order of calls | 4/2 | calls_per_step=2 | tensor_state functions kept \
  | state.first_times=4; memory.state=$both
blocks in turn                  | 4/2 |  | tensor_state blocks kept \
  | state.first_times=4; memory.state=$two
blocks, named                   | 4/2 |  | tensor_state blocks_named kept \
  | state.first_times=4; memory.state=$two
blocks, nonblocking             | 4/2 |  | tensor_state blocks_nonblocking kept \
  | state.first_times=4; memory.state=$two
blocks, leaders                 | 4/2 | hierarchy=leader | tensor_state blocks kept \
  | state.first_times=4; memory.state=$((4 * slot))
empty blocks                    | 4/2 |  | tensor_state empty kept \
  | state.first_times=2; memory.state=$three
empty blocks, nonblocking       | 4/2 |  | tensor_state empty_nonblocking kept \
  | state.first_times=2; memory.state=$three
END

# The program has more buffers than may keep arrays at first, and uses each again. With the
# hierarchy `leader` and two nodes of two ranks, only one rank of each node keeps arrays; the other
# ranks must free the same states.
rows "compressed=120; state_dropped=0; quiet" <<END
40 buffers, leaders     | 4/2 | hierarchy=leader calls_per_step=40 algorithm=bytegrad | many:120
low precision, leaders  | 4/2 | hierarchy=leader calls_per_step=40 \
    algorithm=low_precision_decentralized | many:120
END
