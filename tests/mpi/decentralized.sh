#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# decentralized and low_precision_decentralized against the same recursion worked out in one
# process, byte for byte, and the drifting model that they have to hold together.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
export SLIMPI_MIN_SIZE=0
low=low_precision_decentralized full=decentralized

row() { # MODE ALGORITHM RANKS PER-NODE HIERARCHY PEERS [OPTION=VALUE...]
  mode=$1 algorithm=$2 ranks=$3 per_node=$4 hierarchy=$5 peers=$6
  what="$*"
  shift 6
  holds "$what" under "$ranks" -genv SLIMPI_ALGORITHM "$algorithm" \
    -genv SLIMPI_RANKS_PER_NODE "$per_node" -genv SLIMPI_HIERARCHY "$hierarchy" \
    -genv SLIMPI_PEERS "$peers" env "$@" "$top_builddir/tests/mpi/decentralized" "$mode"
}

row cases $full 2 1 sharded ring
row cases $full 3 1 sharded ring
row cases $full 5 1 flat ring
row cases $full 4 2 sharded ring SLIMPI_INTERVAL=3
row cases $full 5 2 leader ring
row cases $full 4 1 sharded shift_one SLIMPI_START=1
row cases $full 3 1 sharded shift_one SLIMPI_INTERVAL=2
row cases $full 4 2 sharded all
row cases $low 2 1 sharded ring
row cases $low 4 1 sharded ring SLIMPI_BITS=5 SLIMPI_ROUNDING=stochastic
row cases $low 3 1 sharded all SLIMPI_INTERVAL=2
row cases $low 6 2 sharded ring SLIMPI_BUCKET=0
row cases $low 5 2 leader all SLIMPI_START=2
row long $low 3 1 sharded ring
row long $low 4 2 sharded ring SLIMPI_BITS=4
row long $low 4 1 flat all SLIMPI_INTERVAL=3
for ranks in 2 3 4; do
  row drift $full $ranks 1 sharded ring
  row drift $full $ranks 1 sharded shift_one
  row drift $low $ranks 1 sharded ring
done
row drift $full 4 2 sharded ring
row drift $low 4 2 sharded all

# Replicas that follow other peers at every call would be wrong: said in one line, naming the option.
if SLIMPI_ALGORITHM=$low SLIMPI_PEERS=shift_one under 2 "$top_builddir/tests/mpi/decentralized" \
  drift >refused.txt 2>&1; then
  fail "low precision with shift_one runs"
fi
expect "$(grep -c 'SLIMPI_PEERS=shift_one .*accepted: ring, all' refused.txt)" 1 \
  "low precision refuses shift_one in one line"

# What the replicas hold is what algorithms say: (1 + peers) floats an element on every rank.
row drift $low 4 1 sharded ring SLIMPI_REPORT=$work/report.json
expect "$(report report.json memory state)" $((3 * 20000 * 4)) "state of rank 0: three replicas"
verdict
