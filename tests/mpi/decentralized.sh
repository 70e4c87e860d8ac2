#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# decentralized against the same average worked out in one process, byte for byte, and
# low_precision_decentralized against the same recursion, also for 1,000 calls; and the drifting
# model that both have to hold together.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0

# row MODE ALGORITHM RANKS PER-NODE HIERARCHY PEERS [OPTION=VALUE...]
row() {
  mode=$1 algorithm=$2 ranks=$3 per_node=$4 hierarchy=$5 peers=$6
  what="$*"
  shift 6
  holds "$what" under "$ranks" SLIMPI_ALGORITHM="$algorithm" \
    SLIMPI_RANKS_PER_NODE="$per_node" SLIMPI_HIERARCHY="$hierarchy" \
    SLIMPI_PEERS="$peers" "$@" "$top_builddir/tests/mpi/decentralized" "$mode"
}
full=decentralized low=low_precision_decentralized

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
  row drift $low $ranks 1 sharded ring
done
deeper row drift $full 4 2 sharded ring

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
