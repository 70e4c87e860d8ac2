#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# So many nodes that messages go by the Bruck schedule, and few that go by pairwise exchange, in
# whole jobs.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0 SLIMPI_BUCKET=64 SLIMPI_LOG=debug
rows <<END
5 nodes  | 5  |  | steps init sum:3999 sum:3999 finalize \
  | right; out 10 near; err 1 schedule between nodes: pairwise$; err 1 schedule between nodes
64 nodes | 64 |  | steps init sum:3999 sum:3999 finalize \
  | right; out 128 near; err 1 schedule between nodes: bruck$; err 1 schedule between nodes
END
