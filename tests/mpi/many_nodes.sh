#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# So many nodes that messages go by the Bruck schedule, and few that go by pairwise exchange, in
# whole jobs.
. "$top_srcdir/tests/helper/mpi.sh"
row() { # NODES WAY
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_MIN_SIZE=0 SLIMPI_BUCKET=64 SLIMPI_LOG=debug \
    shows "$1 nodes: ends well" under "$1" "$top_builddir/tests/mpi/steps" init sum:3999 \
    sum:3999 finalize
  holds "$1 nodes: same bytes on all, near the sum" alike_on "$1" out.txt
  expect "$(grep -c near out.txt)" $((2 * $1)) "$1 nodes: compressed"
  schedule=$(sed -n 's/.*schedule between nodes: \(.*\)/\1/p' err.txt)
  expect "$schedule" "$2" "$1 nodes: schedule"
}
row 5 pairwise
row 64 bruck
