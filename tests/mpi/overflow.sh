#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A value that fp16 cannot hold becomes infinite, as in a cast. The report counts it once, in the
# sum.
. "$top_srcdir/tests/helper/mpi.sh"
program=$top_builddir/tests/mpi/hooks
export SLIMPI_MIN_SIZE=0 SLIMPI_REPORT=$work/report.json

counted() { # ALGORITHM LIMIT RANKS PER-NODE HIERARCHY CALLS
  what="$*"
  SLIMPI_ALGORITHM=$1 SLIMPI_RANKS_PER_NODE=$4 SLIMPI_HIERARCHY=$5 \
    under "$3" "$program" overflow 30011 "$2" "$6" >overflows.txt || fail "$what: values"
  expect "$(report report.json overflowed)" "$(cat overflows.txt)" "$what: counted"
}
counted fp16 65504 2 1 sharded 1
counted fp16 65504 3 1 sharded 4
counted fp16 65504 5 2 sharded 2
counted fp16 65504 4 2 leader 2
counted fp16 65504 4 2 flat 2
counted bf16 3.3895e38 3 1 sharded 2

# Sums that overflow a float, and infinities that go in, are infinite each by itself.
great() { # RANKS PER-NODE ALGORITHM BITS BUCKET
  SLIMPI_ALGORITHM=$3 SLIMPI_RANKS_PER_NODE=$2 SLIMPI_BITS=$4 SLIMPI_BUCKET=$5 \
    holds "$*: infinities" under "$1" "$program" great 20011
}
great 2 1 bytegrad 8 512
great 4 2 bytegrad 8 64
great 3 1 bytegrad 16 0
great 3 1 qsgd 8 512
great 2 1 packed 8 512
great 4 2 packed 8 512
SLIMPI_HIERARCHY=flat great 5 2 packed 16 512

# The report counts nothing if floats, or few bits, are sent.
for algorithm in allreduce bytegrad; do
  SLIMPI_ALGORITHM=$algorithm SLIMPI_RANKS_PER_NODE=1 \
    under 2 "$program" overflow 30011 65504 1 >/dev/null 2>&1 || true
  expect "$(report report.json overflowed)" 0 "$algorithm: nothing to count"
done
