#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# After the first calls of a size slimpi allocates no memory in a call.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
program=$top_builddir/tests/mpi/steady
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
# A sanitizer has allocation functions of its own.
[ -z "$sanitizer" ] || skip "the sanitizer's allocation functions stand in the way"
preload=$library:$top_builddir/tests/helper/.libs/liballocations.so

# nothing WHAT COUNT: with the options in the environment
nothing() {
  expect "$(under 2 "$program" "$2" 100 50)" "0 allocations in 50 calls" "$1"
}

nothing bytegrad 16384
SLIMPI_ALGORITHM=qsgd nothing qsgd 100000
SLIMPI_ALGORITHM=fp16 nothing fp16 16384
SLIMPI_ERROR_FEEDBACK=1 nothing "error feedback" 16384
SLIMPI_ALGORITHM=powersgd nothing powersgd 16384
SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=shm nothing "exact in the node" 65536
SLIMPI_ALGORITHM=off nothing "left to MPI" 16384
nothing "too small" 1000
verdict
