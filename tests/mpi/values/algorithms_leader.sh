#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every algorithm that guarantees one result for all ranks, with node leaders and without a
# hierarchy.
. "$top_srcdir/tests/helper/scripts/algorithms.sh"

# ranks per-node hierarchy sizes
every_algorithm '
5       2        leader    small
4       2        flat      small
'

# Inside a node by messages instead of shared memory.
export SLIMPI_INTRA=mpi
sums_table '
bytegrad   8    2048   nearest    4     2        sharded   small
bytegrad   4    512    nearest    5     3        leader    small
'
