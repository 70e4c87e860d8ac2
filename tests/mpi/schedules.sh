#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The schedules of the exchange between nodes give each other's bytes; inter/schedules has the same
# in one process. More ranks than a kernel adds at a time are among them.
. "$top_srcdir/tests/helper/mpi.sh"

row() { # RANKS ALGORITHM [OPTION=VALUE...]
  what="$*"
  ranks=$1 algorithm=$2
  shift 2
  holds "$what" plain "$ranks" env SLIMPI_MIN_SIZE=0 SLIMPI_ALGORITHM="$algorithm" \
    SLIMPI_RANKS_PER_NODE=1 "$@" "$top_builddir/tests/mpi/schedules"
}
deeper row 2 bytegrad
row 3 bytegrad SLIMPI_ERROR_FEEDBACK=1 SLIMPI_BITS=4
deeper row 4 bytegrad SLIMPI_BUCKET=0
deeper row 5 qsgd SLIMPI_BITS=3 SLIMPI_BUCKET=100
deeper row 6 allreduce
deeper row 7 fp16
deeper row 9 bytegrad SLIMPI_ERROR_FEEDBACK=1 SLIMPI_BITS=2 SLIMPI_BUCKET=64
