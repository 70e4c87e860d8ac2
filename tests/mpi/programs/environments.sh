#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The same bytes on every rank and run, whatever one rank does to its floating-point environment.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error

for options in bits=8 "bits=6 rounding=stochastic" bucket=0 algorithm=fp16 \
  "algorithm=qsgd bucket=100"; do
  rm -f digests
  rows "right; out 6 near\|exact; same digests" <<END
$options               | 3 | $options | sum:100003 sum:20001
$options, again        | 3 | $options | sum:100003 sum:20001
$options, environments | 3 | $options | init 0?ftz 1?up 2?down sum:100003 sum:20001 finalize
END
done
