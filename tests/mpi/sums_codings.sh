#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every other algorithm that promises one result for all ranks, through the same program as sums.sh.
# A new algorithm joins with a row.
. "$top_srcdir/tests/helper/mpi.sh"
. "$top_srcdir/tests/helper/sums.sh"
need_library
# The low-rank pair at work from the first call, and each call for itself.
export SLIMPI_START=0 SLIMPI_ERROR_FEEDBACK=0 SLIMPI_POWERSGD_RANK=2
low_rank=
if [ -e "$top_builddir/.libs/slimpi-blas.so" ]; then
  low_rank='
powersgd   8    2048   nearest    3     1        sharded   small
batched_powersgd 8 2048 nearest   4     2        leader    small'
fi

# algorithm  bits bucket rounding   ranks per-node hierarchy sizes
sums_table '
qsgd       8    2048   stochastic 3     1        flat      small
qsgd       4    512    stochastic 4     2        flat      small
fp16       8    2048   nearest    3     1        sharded   small
bf16       8    2048   nearest    4     2        sharded   small
allreduce  8    2048   nearest    5     2        sharded   small
'"$low_rank"

# Inside a node by messages instead of shared memory.
export SLIMPI_INTRA=mpi
sums_table '
bytegrad   8    2048   nearest    4     2        sharded   small
bytegrad   4    512    nearest    5     3        leader    small
'
verdict
