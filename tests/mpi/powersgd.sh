#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# powersgd and batched_powersgd: sums of low rank come back, others are followed through the error
# feedback; steps that cannot be compressed pass and leave no trace; every rank holds the same
# bytes whatever its CPU; what is sent and kept is what the shapes say.
. "$top_srcdir/tests/helper/mpi.sh"
program=$top_builddir/tests/mpi/powersgd
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_ALGORITHM=powersgd
export SLIMPI_START=0 SLIMPI_POWERSGD_RANK=4 SLIMPI_POWERSGD_SHAPES=4000=80x50,60000=300x200

run() { # WHAT RANKS SCENARIO...
  what=$1
  shift
  SLIMPI_REPORT=$work/report.json under "$1" "$program" $(shift && echo "$@") &&
    pass "$what" || fail "$what: exit status $?"
}

# Without feedback every call stands for itself, and a matrix of rank 4 is exact.
export SLIMPI_ERROR_FEEDBACK=0
run "rank 4" 3 shared 80 50 4 6 new 1e-5
SLIMPI_ALGORITHM=batched_powersgd run "rank 3, square" 2 shared 60 60 3 6 new 1e-5
SLIMPI_ALGORITHM=batched_powersgd run "rank 1 of a square with a ragged end" 2 \
  shared 1 1000 1 1 new 1
run "the best directions are found" 2 best 80 50 4 10 1.001
run "the best directions, wide" 3 best 300 200 4 20 1.001
run "zero matrices and lost directions" 2 zero 80 50 4 3
unset SLIMPI_ERROR_FEEDBACK

run "with feedback the results follow the sums" 2 track 80 50 60 0.15
if SLIMPI_ERROR_FEEDBACK=0 under 2 "$program" track 80 50 60 0.15 >track.txt 2>&1; then
  fail "without feedback the results follow the sums, too"
fi
run "rank 4 with feedback" 3 shared 80 50 4 20 same 1e-4
run "zero matrices with feedback" 3 zero 80 50 4 1
run "buffers in another order" 3 disorder 80 50 4
holds "state of another order is dropped" test "$(report report.json state_dropped)" -gt 0

# The exact calls at first, then the 12th call.
SLIMPI_START= run "by the 12th call" 4 shared 80 50 4 12 new 1e-3
expect "$(report report.json calls passed start)" 10 "the first ten calls are exact"
expect "$(report report.json calls compressed)" 2 "two calls are not"

# Steps that cannot be compressed leave no trace.
for bad in none nan infinity opposite huge large; do
  run "a step with $bad" 3 dump 80 50 6 $bad "$work/$bad.bin"
  if [ $bad != none ]; then
    same none.bin $bad.bin "the calls after a step with $bad"
    expect "$(report report.json calls passed nonfinite)" 2 "steps with $bad are counted"
  fi
done

# Nodes with several ranks, in each hierarchy.
for hierarchy in sharded leader flat; do
  SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=$hierarchy run "2 nodes of 2, $hierarchy" 4 \
    dump 80 50 6 none "$work/$hierarchy.bin"
done

# 4 nodes send both factors, exactly; each keeps the residual and Q.
SLIMPI_POWERSGD_RANK=2 run "300 x 200" 4 dump 300 200 5 none "$work/out.bin"
headers=$((2 * 4 * 6 * 48)) # of 6 messages of each of 4 ranks, for P and for Q
expect "$(report report.json bytes sent)" $((5 * (2 * 3 * 4 * 2 * (300 + 200) + headers))) \
  "bytes sent"
expect "$(report report.json bytes plain)" $((5 * 2 * 3 * 4 * 60000)) "bytes of a plain allreduce"
expect "$(report report.json memory state)" $((4 * 60000 + 4 * 2 * 200)) "bytes of state"

# Where compressing does not pay, the sum is exact.
export SLIMPI_POWERSGD_RANK=1 SLIMPI_POWERSGD_SHAPES=16=4x4,20=4x5,18=3x6,100=1x100,60=2x30,64=4x16
run "shapes" 2 boundary 1:exact 2:exact 5:exact 16:exact 17:low 20:low 18:exact 100:exact \
  60:exact 64:low
export SLIMPI_ALGORITHM=batched_powersgd
run "the square does not look at shapes" 2 boundary 100:low 60:low
SLIMPI_POWERSGD_RANK=3 run "squares of 12 and 13 at rank 3" 2 boundary 144:exact 145:low
SLIMPI_POWERSGD_RANK=64 run "a rank beyond the matrix" 2 boundary 400:exact
export SLIMPI_ALGORITHM=powersgd
run "a hint wins over the option" 2 hint 20 2 10 exact
run "a hint makes it pay" 2 hint 100 10 10 low
