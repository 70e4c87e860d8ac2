#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every algorithm that promises one result for all ranks, where the ranks of a node share its work.
. "$top_srcdir/tests/helper/algorithms.sh"

# ranks per-node hierarchy sizes
every_algorithm '
4       2        sharded   small
5       3        sharded   small
'
verdict
