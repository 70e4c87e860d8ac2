# SPDX-License-Identifier: BSD-3-Clause
# THE table of algorithms for tests: each goes through the same sizes, special values, ranks, nodes
# and checks as bytegrad. A new one joins with a row; NAME=OTHER has errors like those of OTHER.
# `every_algorithm LAYOUTS` runs all of them in each layout, a line of
#   ranks ranks-per-node hierarchy sizes [collective]
# through tests/mpi/values/sums, and fails unless all pass. The decentralized pair, whose ranks
# differ by design, goes through the same inputs in tests/mpi/values/decentralized.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/sums.sh"
# The low-rank algorithms compress from the first call, and without error feedback, so that each
# call can be checked by itself.
export SLIMPI_START=0 SLIMPI_ERROR_FEEDBACK=0 SLIMPI_POWERSGD_RANK=2

# algorithm      bits bucket rounding
algorithms='
bytegrad         8    2048   nearest
qsgd             8    2048   stochastic
packed           8    64     nearest
fp16             8    2048   nearest
bf16             8    2048   nearest
allreduce        8    2048   nearest
powersgd         8    2048   nearest
batched_powersgd 8    2048   nearest
codec            8    2048   nearest
strategy         8    2048   nearest
'
# codec and strategy are hooks, below.
hook codec failing
hook strategy failing -DEXACT

every_algorithm() {
  echo "$1" | while read -r layout; do
    [ -n "$layout" ] || continue
    echo "$algorithms" | while read -r row; do
      [ -z "$row" ] || echo "$row $layout"
    done
  done >rows.txt
  sums_table "$(cat rows.txt)"
}
