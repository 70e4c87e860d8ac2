#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# decentralized against the same average worked out in one process, byte for byte, and the drifting
# model that it has to hold together.
. "$top_srcdir/tests/helper/mpi.sh"
. "$top_srcdir/tests/helper/decentralized.sh"
full=decentralized

deeper row cases $full 2 1 sharded ring
row cases $full 3 1 sharded ring
deeper row cases $full 5 1 flat ring
row cases $full 4 2 sharded ring SLIMPI_INTERVAL=3
row cases $full 5 2 leader ring
row cases $full 4 1 sharded shift_one SLIMPI_START=1
row cases $full 3 1 sharded shift_one SLIMPI_INTERVAL=2
row cases $full 4 2 sharded all
for ranks in 2 3 4; do
  [ $ranks = 3 ] || expensive || continue
  row drift $full $ranks 1 sharded ring
  row drift $full $ranks 1 sharded shift_one
done
deeper row drift $full 4 2 sharded ring
