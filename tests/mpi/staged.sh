#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The schedules with staged messages, as a GPU's memory needs them, give the bytes of the host's.
. "$top_srcdir/tests/helper/mpi.sh"

row() { # ALGORITHM RANKS PER-NODE [OPTION=VALUE...]
  what="$*"
  algorithm=$1 ranks=$2 per_node=$3
  shift 3
  holds "$what" plain "$ranks" env SLIMPI_MIN_SIZE=0 SLIMPI_ALGORITHM="$algorithm" \
    SLIMPI_RANKS_PER_NODE="$per_node" "$@" "$top_builddir/tests/mpi/staged"
}
row bytegrad 3 1
row bytegrad 4 2 SLIMPI_ERROR_FEEDBACK=1 SLIMPI_BITS=4
row decentralized 3 1
row decentralized 4 2 SLIMPI_PEERS=shift_one SLIMPI_INTERVAL=2
row low_precision_decentralized 3 1
row low_precision_decentralized 4 2 SLIMPI_PEERS=all SLIMPI_BUCKET=0
row low_precision_decentralized 4 1 SLIMPI_BUCKET=64 SLIMPI_BITS=3
