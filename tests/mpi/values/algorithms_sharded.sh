#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every algorithm that guarantees one result for all ranks, with a shard for every rank of a node.
. "$top_srcdir/tests/helper/scripts/algorithms.sh"

# ranks per-node hierarchy sizes
every_algorithm '
4       2        sharded   small
5       3        sharded   small
'
