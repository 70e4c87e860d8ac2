#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_HIERARCHY=flat: the bytes of a sum do not depend on which ranks share a node, and with
# SLIMPI_ALGORITHM=allreduce each element is the sum in rank order. The floats of a length and of
# the next one lie in chunks of other owners. mpi/golden.sh has the lossy algorithms.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_ALGORITHM=allreduce SLIMPI_HIERARCHY=flat SLIMPI_TYPES=float,double SLIMPI_MIN_SIZE=0
export SLIMPI_REPORT=$work/report.json UCX_LOG_LEVEL=error

ordered() { # RANKS RANKS_PER_NODE [SLIMPI_VERIFY]
  what="$1 ranks, $2 a node (0: one node)"
  SLIMPI_RANKS_PER_NODE=$2 SLIMPI_VERIFY=${3:-0} shows "$what" \
    under "$1" "$top_builddir/tests/mpi/ordered" 97 70001 70002 300007
  [ -e "$1.txt" ] || mv out.txt "$1.txt"
  [ ! -e out.txt ] || same "$1.txt" out.txt "$what: the same bytes"
}
for ranks in 3 5; do
  for per_node in 0 1 2; do ordered $ranks $per_node; done
done
expect "$(report report.json ranks) $(report report.json nodes)" "5 5" "each rank counts as a node"
floats=$(report report.json calls float32) # 36; 24 where the MPI has no persistent sums
holds "how the values travel" test "$floats" -ge 24 -a \
  "$floats" = "$(report report.json calls float64)"
ordered 3 2 1
[ "$(report report.json error checked)" -gt 7 ] || fail "few sums were verified"
holds "the error against MPI's order is that of doubles or floats" \
  awk "BEGIN { exit !($(report report.json error max_rel_l2) < 1e-6) }"
