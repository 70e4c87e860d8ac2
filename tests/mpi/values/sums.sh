#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The quantizers over ranks, nodes, hierarchies, bits and buckets, through a program that knows the
# exact sum and the bound of each element.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/sums.sh"

# algorithm  bits bucket rounding   ranks per-node hierarchy sizes [collective]
sums_table '
bytegrad   8    2048   nearest    2     1        sharded   small
bytegrad   4    2048   nearest    3     1        sharded   small
bytegrad   3    100    nearest    5     1        sharded   small
bytegrad   8    2048   stochastic 3     1        sharded   small
bytegrad   5    2048   nearest    4     2        sharded   small
bytegrad   8    0      nearest    5     2        leader    small
bytegrad   7    2048   nearest    3     3        sharded   small
bytegrad   8    2048   nearest    3     1        sharded   large
qsgd       4    512    stochastic 4     2        flat      small
bytegrad   16   2048   nearest    3     1        sharded   small
bytegrad   12   100    nearest    4     2        leader    small
bytegrad   8    2048   nearest    3     1        sharded   small  Reduce_scatter_block
bytegrad   4    2048   nearest    3     1        sharded   small  Reduce_scatter
bytegrad   4    2048   nearest    5     3        sharded   small  Reduce_scatter
bytegrad   8    0      nearest    5     2        leader    small  Ireduce_scatter
bytegrad   8    2048   stochastic 4     2        sharded   large  Reduce_scatter_init
qsgd       4    512    stochastic 4     2        flat      small  Ireduce_scatter_block
qsgd       16   0      stochastic 3     1        flat      small
qsgd       2    64     nearest    2     1        flat      small
bytegrad   8    512    nearest    3     1        sharded   small  Allgather
bytegrad   4    100    nearest    5     2        sharded   small  Allgatherv
bytegrad   8    0      nearest    5     2        leader    small  Iallgatherv
bytegrad   6    512    stochastic 4     2        sharded   large  Allgatherv_init
qsgd       4    512    stochastic 4     2        flat      small  Iallgather
'
deeper sums_table '
bytegrad   1    64     nearest    2     1        sharded   small
bytegrad   8    0      nearest    4     1        flat      small
bytegrad   8    2048   nearest    4     2        leader    small
bytegrad   8    2048   nearest    4     2        flat      small
bytegrad   6    512    nearest    5     3        sharded   small
bytegrad   8    2048   nearest    3     3        sharded   small  Reduce_scatter
bytegrad   12   2048   nearest    3     1        sharded   large  Reduce_scatter
bytegrad   16   100    nearest    4     2        sharded   small  Reduce_scatter_block_init
qsgd       16   0      stochastic 3     1        flat      small  Reduce_scatter
qsgd       8    0      stochastic 3     1        flat      small
bytegrad   16   2048   nearest    4     2        leader    small  Allgather_init
bytegrad   5    64     nearest    7     3        sharded   small  Allgatherv
bytegrad   8    2048   nearest    3     3        sharded   small  Allgatherv
bytegrad   9    0      nearest    4     2        sharded   small
bytegrad   15   2048   stochastic 3     1        sharded   large
bytegrad   10   64     nearest    2     1        sharded   small
'
