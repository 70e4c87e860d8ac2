#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Counts that differ among ranks, between nodes: with every algorithm, and whatever messages a call
# has, every rank gets an error in seconds that names a rank, the communicator, the call and both
# counts. Few floats go in one message, and a message may be longer than another rank expects.
. "$top_srcdir/tests/helper/mpi.sh"
begin="init dup name:gradients return"
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
seconds=60

# differs WHAT STEP...: behind $first each rank makes a step of its own. Its error names another
# count than its own.
differs() {
  differs=$1
  shift
  ranks=$#
  # shellcheck disable=SC2046,SC2086 # words
  shows "$differs: the job ends by itself" under "$ranks" "$steps" $begin $first $(on_each "$@") \
    free finalize
  error="rank [0-9]* passes [0-9]* floats in $call on gradients (${number}rank [0-9]* of $ranks), \
[0-9]* floats; all ranks must"
  named=$(grep -c "^[0-9]* sum:[0-9]* error slimpi: .*$error" out.txt || :)
  expect "$named" "$ranks" "$differs: errors"
}
first=sum:65536 call='call 2' number='communicator [0-9]*, '
differs "one message each" sum:20000 sum:30000
differs "one message each, some more" sum:20000 sum:40000
differs "the longer one on rank 0" sum:30000 sum:20000
differs "one of four" sum:20000 sum:20000 sum:30000 sum:20000
algorithms='decentralized low_precision_decentralized'
if expensive; then
  # shellcheck disable=SC2046
  SLIMPI_MIN_SIZE=0 SLIMPI_BUCKET=64 SLIMPI_BITS=4 SLIMPI_LOG=debug \
    differs "61 ranks by Bruck's schedule" $(yes sum:4099 | head -n 60) sum:5000
  holds "it is Bruck's" grep -q "schedule between nodes: bruck" err.txt
  algorithms="$algorithms fp16 allreduce qsgd"
fi
for algorithm in $algorithms; do
  SLIMPI_ALGORITHM=$algorithm differs "$algorithm" sum:20000 sum:30000
done
SLIMPI_ALGORITHM=decentralized SLIMPI_PEERS=shift_one differs "decentralized, one peer" \
  sum:20000 sum:30000 sum:20000 sum:30000
SLIMPI_ALGORITHM=powersgd SLIMPI_START=0 differs "low rank" sum:20000 sum:30000
SLIMPI_ERROR_FEEDBACK=1 differs "error feedback" sum:20000 sum:30000
SLIMPI_ERROR_FEEDBACK=1 differs "error feedback, one is larger than any before" sum:60000 sum:200000
SLIMPI_MAX_ERROR=0.01 differs "an error bound" sum:20000 sum:30000
SLIMPI_HIERARCHY=leader SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=mpi \
  differs "in a node, by messages" sum:20000 sum:20000 sum:20000 sum:30000
first='sum:65536 sum:65536 sum:65536' call='call [0-9]*'
SLIMPI_ALGORITHM=auto differs "auto" sum:20000 sum:30000
first='' call='the first call' number=  # no number yet
differs "the first call" sum:20000 sum:30000
if expensive && hook topk topk; then
  first=sum:65536 call='call 2' number='communicator [0-9]*, '
  SLIMPI_ALGORITHM=hook:$work/topk.so differs "a hook" sum:20000 sum:30000
fi
