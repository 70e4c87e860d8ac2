#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# After the first calls of a size slimpi allocates no memory in a call.
. "$top_srcdir/tests/helper/mpi.sh"
program=$top_builddir/tests/mpi/steady
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
# A sanitizer has allocation functions of its own.
[ -z "$sanitizer" ] || skip "the sanitizer's allocation functions stand in the way"
preload=$preload:$top_builddir/tests/helper/.libs/liballocations.so

# nothing WHAT COUNT [RANKS WARM CALLS COLLECTIVE]: with the options in the environment
nothing() {
  expect "$(under "${3:-2}" "$program" "$2" "${4:-100}" "${5:-50}" "${6:-Allreduce}")" \
    "0 allocations in ${5:-50} calls" "$1"
}

nothing bytegrad 16384
SLIMPI_ALGORITHM=qsgd nothing qsgd 100000
SLIMPI_ALGORITHM=fp16 deeper nothing fp16 16384
SLIMPI_ERROR_FEEDBACK=1 nothing "error feedback" 16384
nothing "a reduce-scatter" 16384 2 100 50 Reduce_scatter
SLIMPI_RANKS_PER_NODE=2 SLIMPI_ERROR_FEEDBACK=1 nothing "a reduce-scatter, nodes of two and one" \
  16384 3 100 50 Reduce_scatter
SLIMPI_ALGORITHM=powersgd nothing powersgd 16384
export SLIMPI_ALGORITHM=decentralized
nothing decentralized 16384
SLIMPI_PEERS=shift_one deeper nothing "decentralized, peers that change" 16384
SLIMPI_PEERS=all nothing "decentralized, all peers" 16384
SLIMPI_INTERVAL=3 deeper nothing "decentralized, every third call" 16384
export SLIMPI_ALGORITHM=low_precision_decentralized
nothing low_precision_decentralized 16384
SLIMPI_PEERS=all deeper nothing "low_precision_decentralized, all peers" 16384
SLIMPI_INTERVAL=3 deeper nothing "low_precision_decentralized, every third call" 16384
unset SLIMPI_ALGORITHM
SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=mpi nothing "messages inside nodes" 65536 4
SLIMPI_BUCKET=64 SLIMPI_MIN_SIZE=0 nothing "the Bruck schedule" 4099 61 3 3
SLIMPI_RANKS_PER_NODE=2 nothing "one node" 65536
SLIMPI_MAX_ERROR=1e-2 nothing "SLIMPI_MAX_ERROR" 300000
SLIMPI_MAX_ERROR=1e-9 deeper nothing "SLIMPI_MAX_ERROR, an exchange that is repeated" 16384
SLIMPI_MAX_ERROR=1e-2 SLIMPI_BUCKET=0 SLIMPI_RANKS_PER_NODE=2 nothing \
  "SLIMPI_MAX_ERROR, nodes of two, buckets longer than tiles" 300000 4 20 10
SLIMPI_VERIFY=2 nothing "SLIMPI_VERIFY, every second call" 16384
for name in topk sign; do
  hook $name $name
  SLIMPI_ALGORITHM="hook:$work/$name.so" nothing "the hook $name" 16384
done
SLIMPI_ALGORITHM=off nothing "left to MPI" 16384
nothing "too small" 1000
