#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# low_precision_decentralized against the same recursion worked out in one process, byte for byte
# and for 1,000 calls, and the drifting model that it has to hold together.
. "$top_srcdir/tests/helper/mpi.sh"
. "$top_srcdir/tests/helper/decentralized.sh"
low=low_precision_decentralized

row cases $low 2 1 sharded ring
row cases $low 4 1 sharded ring SLIMPI_BITS=5 SLIMPI_ROUNDING=stochastic
row cases $low 3 1 sharded all SLIMPI_INTERVAL=2
row cases $low 2 1 sharded ring SLIMPI_BITS=12
deeper row long $low 3 1 sharded ring SLIMPI_BITS=16
deeper row cases $low 6 2 sharded ring SLIMPI_BUCKET=0
row cases $low 5 2 leader all SLIMPI_START=2
row long $low 3 1 sharded ring
deeper row long $low 4 2 sharded ring SLIMPI_BITS=4
row long $low 4 1 flat all SLIMPI_INTERVAL=3
for ranks in 2 3 4; do
  [ $ranks = 3 ] || expensive || continue
  row drift $low $ranks 1 sharded ring
done
deeper row drift $low 4 2 sharded all

row overflow $low 3 1 sharded ring
deeper row overflow $low 4 2 sharded all

# Replicas that follow other peers at every call would be wrong: refused in one line.
if SLIMPI_ALGORITHM=$low SLIMPI_PEERS=shift_one under 2 "$top_builddir/tests/mpi/decentralized" \
  drift >refused.txt 2>&1; then
  fail "low precision with shift_one runs"
fi
expect "$(grep -c 'SLIMPI_PEERS=shift_one .*accepted: ring, all' refused.txt)" 1 \
  "low precision refuses shift_one in one line"

# The state of a rank is (1 + peers) floats for each element of its shard.
row drift $low 4 1 sharded ring SLIMPI_REPORT="$work/report.json"
expect "$(report report.json memory state)" $((3 * 20000 * 4)) "state of rank 0: three replicas"
