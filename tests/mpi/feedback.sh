#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Error feedback: what one call loses the next ones give back; stochastic rounding needs none.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0

mean() { # RANKS PER-NODE ALGORITHM BITS FEEDBACK
  SLIMPI_RANKS_PER_NODE=$2 SLIMPI_ALGORITHM=$3 SLIMPI_BITS=$4 SLIMPI_ERROR_FEEDBACK=$5 \
    under "$1" "$top_builddir/tests/mpi/feedback" mean
}
falls() { # ALGORITHM BITS [RANKS]
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=$1 SLIMPI_BITS=$2 SLIMPI_ERROR_FEEDBACK=1 \
    under "${3-2}" "$top_builddir/tests/mpi/feedback" falls
}

holds "bytegrad, 4 bits, with feedback" mean 3 1 bytegrad 4 1
holds "bytegrad, 4 bits, with feedback, two ranks a node" mean 4 2 bytegrad 4 1
SLIMPI_HIERARCHY=leader holds "bytegrad, 4 bits, with feedback, leaders" mean 5 2 bytegrad 4 1
if mean 3 1 bytegrad 4 0 2>/dev/null; then fail "nearest rounding without feedback is as good"; fi
holds "qsgd, 8 bits" mean 3 1 qsgd 8 0
holds "qsgd, 4 bits" mean 3 1 qsgd 4 0
SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=qsgd holds "qsgd's draws" \
  under 3 "$top_builddir/tests/mpi/feedback" draws
holds "bf16 with feedback" mean 2 1 bf16 8 1

for bits in 1 2 3 8; do
  holds "bytegrad, $bits bits: the mean nears the sum" falls bytegrad $bits
done
for bits in 1 1.5 2 2.5 3 4 8; do
  holds "packed, $bits bits: the mean nears the sum" falls packed $bits
done
for bits in 1 2; do holds "qsgd, $bits bits: the mean nears the sum" falls qsgd $bits 3; done

export SLIMPI_REPORT=$work/report.json
for feedback in 0 1; do
  SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=packed SLIMPI_ERROR_FEEDBACK=$feedback SLIMPI_VERIFY=1 \
    holds "zeros and tiny values on 8 nodes" under 8 "$top_builddir/tests/mpi/feedback" tiny
  expect "$(report report.json error beyond_bound)" 0 "SLIMPI_VERIFY finds nothing wrong"
done
unset SLIMPI_REPORT

steps() { # RANKS PER-NODE HIERARCHY ALGORITHM BITS [FEEDBACK]
  SLIMPI_RANKS_PER_NODE=$2 SLIMPI_HIERARCHY=$3 SLIMPI_ALGORITHM=$4 SLIMPI_BITS=$5 \
    SLIMPI_ERROR_FEEDBACK=${6-1} under "$1" "$top_builddir/tests/mpi/feedback" steps
}
holds "steps that are not finite, 2 bits" steps 3 1 sharded bytegrad 2
holds "steps that are not finite, two ranks a node" steps 4 2 sharded bytegrad 4
holds "steps that are not finite, leader" steps 5 2 leader bytegrad 3
holds "steps that are not finite, fp16" steps 3 1 sharded fp16 8
SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=bf16 SLIMPI_ERROR_FEEDBACK=1 \
  holds "steps that are large" under 3 "$top_builddir/tests/mpi/feedback" large
