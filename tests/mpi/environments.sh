#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The same bytes on every rank and run, whatever one rank does to its floating-point environment.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error

# alike_bytes WHAT COMMAND...: all ranks print the digests of expected.txt
alike_bytes() {
  what_ran=$1
  shift
  under 3 "$@" >out.txt || fail "$what_ran: exit status $?"
  for rank in 0 1 2; do
    sed -n "s/^$rank //p" out.txt >"$rank.txt"
    same expected.txt "$rank.txt" "$what_ran: rank $rank"
  done
}

for options in "SLIMPI_BITS=8" "SLIMPI_BITS=6 SLIMPI_ROUNDING=stochastic" "SLIMPI_BUCKET=0" \
  "SLIMPI_ALGORITHM=fp16" "SLIMPI_ALGORITHM=qsgd SLIMPI_BUCKET=100"; do
  # shellcheck disable=SC2086
  export $options
  run_steps "$options" 3 sum:100003 sum:20001
  sed -n 's/^0 //p' out.txt >expected.txt
  expect "$(grep -Ec "near|exact" expected.txt)" 2 "$options: sums"
  alike_bytes "$options, again" "$steps" init sum:100003 sum:20001 finalize
  alike_bytes "$options, environments" "$steps" init 0?ftz 1?up 2?down sum:100003 sum:20001 finalize
  unset SLIMPI_BITS SLIMPI_ROUNDING SLIMPI_BUCKET SLIMPI_ALGORITHM
done
