#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# State of the wrong tensor: error feedback makes no sum worse than its bound says, SLIMPI_VERIFY
# agrees, and state without a bound is not used.
. "$top_srcdir/tests/helper/mpi.sh"
need "${MPICC:-mpicc}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_START=2

hook topk topk
for ranks in 2 3; do
  SLIMPI_VERIFY=1 SLIMPI_REPORT=$work/$ranks.json holds "the bound, $ranks ranks" \
    under $ranks "$top_builddir/tests/mpi/identities" "$work/topk.so" 2>errors.txt
  expect "$(report $ranks.json error beyond_bound)" 0 "$ranks ranks: SLIMPI_VERIFY finds the same"
  holds "$ranks ranks: there was much to check" \
    test "$(report $ranks.json error checked)" -ge 1000
  # malloc may give the ranks their addresses in different orders; nothing else is said.
  expect "$(grep -v 'different orders' errors.txt)" "" "$ranks ranks: what is said"
done
# Without feedback packed has a bound, too.
while read -r ranks per_node hierarchy bits; do
  flat=0 leader=0
  [ $hierarchy != flat ] || flat=1
  [ $hierarchy != leader ] || leader=1
  SLIMPI_START=0 SLIMPI_ALGORITHM=packed SLIMPI_BITS=$bits SLIMPI_RANKS_PER_NODE=$per_node \
    SLIMPI_HIERARCHY=$hierarchy SLIMPI_VERIFY=1 SLIMPI_REPORT=$work/packed.json \
    holds "packed, $bits bits, $ranks ranks, $hierarchy" under "$ranks" \
    "$top_builddir/tests/mpi/sums" packed "$bits" 64 nearest "$per_node" $flat $leader small \
    </dev/null
  expect "$(report packed.json error beyond_bound)" 0 "SLIMPI_VERIFY finds them within the bound"
  [ "$(report packed.json error checked)" -ge 50 ] || fail "few sums were checked"
done <<END
3 1 sharded 8
4 2 leader 2
3 1 flat 12
END
