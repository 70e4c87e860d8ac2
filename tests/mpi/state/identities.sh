#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# State of the wrong tensor: error feedback makes no sum worse than its bound says, SLIMPI_VERIFY
# agrees, and state without a bound is not used.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
need "${MPICC:-mpicc}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_VERIFY=1
hook topk topk

# SLIMPI_VERIFY finds the same as the program, of much. malloc may give the ranks their addresses in
# different orders; nothing else is said.
for ranks in 2 3; do
  rows "error.beyond_bound=0; error.checked>=1000" <<END
the bound, $ranks ranks | $ranks | start=2 | identities $work/topk.so
END
  expect "$(grep -v 'different orders' err.txt)" "" "$ranks ranks: what is said"
done
# Without feedback packed has a bound, too: sums ALGORITHM BITS BUCKET ROUNDING PER-NODE FLAT LEADER
rows "error.beyond_bound=0; error.checked>=50" <<END
packed, 8 bits          | 3   | start=0 algorithm=packed bits=8 hierarchy=sharded \
  | sums packed 8 64 nearest 1 0 0 small
packed, 2 bits, leaders | 4/2 | start=0 algorithm=packed bits=2 hierarchy=leader \
  | sums packed 2 64 nearest 2 0 1 small
packed, 12 bits, flat   | 3   | start=0 algorithm=packed bits=12 hierarchy=flat \
  | sums packed 12 64 nearest 1 1 0 small
END
