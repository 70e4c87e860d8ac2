# SPDX-License-Identifier: BSD-3-Clause
# For tests that run tests/mpi/decentralized:
#   row MODE ALGORITHM RANKS PER-NODE HIERARCHY PEERS [OPTION=VALUE...]
export SLIMPI_MIN_SIZE=0

row() {
  mode=$1 algorithm=$2 ranks=$3 per_node=$4 hierarchy=$5 peers=$6
  what="$*"
  shift 6
  holds "$what" under "$ranks" SLIMPI_ALGORITHM="$algorithm" \
    SLIMPI_RANKS_PER_NODE="$per_node" SLIMPI_HIERARCHY="$hierarchy" \
    SLIMPI_PEERS="$peers" "$@" "$top_builddir/tests/mpi/decentralized" "$mode"
}
