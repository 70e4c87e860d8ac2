# SPDX-License-Identifier: BSD-3-Clause
# For tests that run tests/mpi/decentralized:
#   row MODE ALGORITHM RANKS PER-NODE HIERARCHY PEERS [OPTION=VALUE...]
export SLIMPI_MIN_SIZE=0

row() {
  mode=$1 algorithm=$2 ranks=$3 per_node=$4 hierarchy=$5 peers=$6
  what="$*"
  shift 6
  holds "$what" under "$ranks" -genv SLIMPI_ALGORITHM "$algorithm" \
    -genv SLIMPI_RANKS_PER_NODE "$per_node" -genv SLIMPI_HIERARCHY "$hierarchy" \
    -genv SLIMPI_PEERS "$peers" env "$@" "$top_builddir/tests/mpi/decentralized" "$mode"
}
