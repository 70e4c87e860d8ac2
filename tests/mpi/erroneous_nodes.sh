#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Counts that differ among ranks, between nodes: with every algorithm, and whatever messages a call
# has, every rank gets an error in seconds that names a rank, the communicator, the call and both
# counts. Few floats go in one message, and a message may be longer than another rank expects.
. "$top_srcdir/tests/helper/mpi.sh"
: "${MPICC:=mpicc}"
program=$top_builddir/tests/mpi/erroneous
export UCX_LOG_LEVEL=error SLIMPI_RANKS_PER_NODE=1
seconds=60

# differs WHAT RANKS ARGUMENT...: each rank has an error that names another count than its own.
differs() {
  what=$1 ranks=$2
  shift 2
  status=0
  under "$ranks" "$program" "$@" >out.txt 2>err.txt || status=$?
  expect "$status" 0 "$what: the job ends by itself"
  error="rank [0-9]* passes [0-9]* floats in $call on gradients (${number}rank [0-9]* of $ranks), \
[0-9]* floats; all ranks must"
  named=$(grep -c "^rank [0-9]*: slimpi: .*$error" out.txt || :)
  expect "$named" "$ranks" "$what: errors"
  [ "$status:$named" = "0:$ranks" ] || cat out.txt err.txt
}
call='call 2' number='communicator [0-9]*, '
differs "one message each" 2 20000 30000
differs "one message each, some more" 2 20000 40000
differs "the longer one on rank 0" 2 30000 20000
differs "one of four" 4 20000 20000 30000 20000
algorithms='decentralized low_precision_decentralized'
if expensive; then
  # shellcheck disable=SC2046
  SLIMPI_MIN_SIZE=0 SLIMPI_BUCKET=64 SLIMPI_BITS=4 SLIMPI_LOG=debug \
    differs "61 ranks by Bruck's schedule" 61 $(yes 4099 | head -n 60) 5000
  holds "it is Bruck's" grep -q "schedule between nodes: bruck" err.txt
  algorithms="$algorithms fp16 allreduce qsgd"
fi
for algorithm in $algorithms; do
  SLIMPI_ALGORITHM=$algorithm differs "$algorithm" 2 20000 30000
done
SLIMPI_ALGORITHM=decentralized SLIMPI_PEERS=shift_one differs "decentralized, one peer" 4 \
  20000 30000 20000 30000
SLIMPI_ALGORITHM=powersgd SLIMPI_START=0 differs "low rank" 2 20000 30000
SLIMPI_ERROR_FEEDBACK=1 differs "error feedback" 2 20000 30000
SLIMPI_ERROR_FEEDBACK=1 differs "error feedback, one is larger than any before" 2 60000 200000
SLIMPI_MAX_ERROR=0.01 differs "an error bound" 2 20000 30000
SLIMPI_HIERARCHY=leader SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=mpi \
  differs "in a node, by messages" 4 20000 20000 20000 30000
call='call [0-9]*'
SLIMPI_ALGORITHM=auto differs "auto" 2 3 20000 30000
call='the first call' number=  # no number yet
differs "the first call" 2 0 20000 30000
if expensive && command -v "$MPICC" >/dev/null 2>&1; then
  "$MPICC" -std=c99 -O2 -shared -fPIC -I"$top_srcdir/include" -o topk.so \
    "$top_srcdir/tests/programs/hook_topk.c" -lm
  call='call 2' number='communicator [0-9]*, '
  SLIMPI_ALGORITHM=hook:$work/topk.so differs "a hook" 2 20000 30000
fi
