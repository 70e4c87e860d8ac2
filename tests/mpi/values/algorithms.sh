#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every algorithm that guarantees one result for all ranks, where each rank is a node; and on one
# node.
. "$top_srcdir/tests/helper/scripts/algorithms.sh"

# ranks per-node hierarchy sizes
every_algorithm '
3       1        sharded   small
4       2        sharded   small  Reduce_scatter
'
# On one node, every algorithm gives MPI's sums.
sums_table 'bytegrad 8 2048 nearest 3 3 sharded small'
deeper every_algorithm '
3       3        sharded   small
2       1        sharded   small
3       1        sharded   small  Reduce_scatter_block
3       1        sharded   large
'
