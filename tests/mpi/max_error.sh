#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_MAX_ERROR: whatever the input, the measured error is under the bound, and the codec is not
# finer than it has to be.
. "$top_srcdir/tests/helper/mpi.sh"
program=$top_builddir/tests/mpi/max_error
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BUCKET=512 SLIMPI_REPORT=$work/report.json

# kept RANKS BUDGET COUNT [KIND]: no error is above the budget.
kept() {
  ranks=$1
  shift
  if SLIMPI_MAX_ERROR=$1 under "$ranks" "$program" "$@" >errors.txt 2>&1; then
    pass "$ranks ranks: $*"
  else
    fail "$ranks ranks: $*"
    cat errors.txt
  fi
}
# chose: the codecs of the last run, as one line.
chose() {
  "$PYTHON" -c 'import json, sys
print(*[c + ":" + str(n["calls"]) for c, n in json.load(open(sys.argv[1]))["codecs"].items()])' \
    report.json
}

budgets='1e-1 1e-3 1e-5' jobs=2 counts='1 65 2049' hierarchies='sharded leader'
if expensive; then
  budgets="$budgets 1e-2 1e-4" jobs='2 4' counts="$counts 2 63" hierarchies="$hierarchies flat"
fi
for budget in $budgets; do kept 3 "$budget" 60001; done
for ranks in $jobs; do for budget in 1e-1 2e-3; do kept "$ranks" $budget 100000; done; done
for count in $counts; do kept 3 1e-2 "$count"; done
for bucket in 0 64 5000; do SLIMPI_BUCKET=$bucket deeper kept 3 2e-2 70000; done
for hierarchy in $hierarchies; do
  SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=$hierarchy kept 5 1e-2 50000
done
SLIMPI_ALGORITHM=qsgd kept 3 1e-2 50000
SLIMPI_ALGORITHM=qsgd deeper kept 2 2e-1 50000

# Inputs that deceive an estimate: addends that cancel except in one quiet tile or bucket, heavy
# tails, spikes, mixed scales. No call is beyond the bound, and some were repeated for it.
SLIMPI_BUCKET=64 kept 3 5e-2 12000 adversarial 160
holds "the check repeats exchanges" test "$(report report.json repeated)" -gt 0
expect "$(report report.json overflowed)" 0 "nothing became infinite in 16 bits"
# Sums that 16-bit floats cannot hold: an exchange that is repeated is not repeated with these.
SLIMPI_BUCKET=64 kept 2 5e-2 12000 adversarial 160 1e6
holds "large sums: the check repeats exchanges" test "$(report report.json repeated)" -gt 0
expect "$(report report.json overflowed)" 0 "large sums: nothing became infinite in 16 bits"
for bucket in 0 2048; do SLIMPI_BUCKET=$bucket deeper kept 2 1e-1 8000 adversarial 64; done
SLIMPI_BUCKET=64 SLIMPI_ALGORITHM=qsgd kept 4 1e-1 8000 adversarial 48
for hierarchy in sharded leader; do
  SLIMPI_BUCKET=64 SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=$hierarchy \
    kept 5 5e-2 8000 adversarial 40
done
printf '* * * bytegrad 4\n' >rules
SLIMPI_BUCKET=64 SLIMPI_RULES=$work/rules kept 2 1e-2 8000 adversarial 24
# A bound that no codec keeps: exact sums, whose error is the rounding of floats.
kept 3 1e-9 8000 adversarial 8
expect "$(chose)" float32:8 "a bound below the rounding of floats takes floats"

# The codec is not wasteful: 1,000,000 normal values.
for ranks in $jobs; do
  SLIMPI_VERIFY=1 kept "$ranks" 1e-2 1000000 normal
  expect "$(chose)" 8:1 "8 bits do for a budget of 1e-2 on $ranks ranks"
  eight=$(report report.json bytes sent)
  error=$(report report.json error max_rel_l2)
  holds "SLIMPI_VERIFY finds $error" awk "BEGIN { exit !($error > 0.005 && $error <= 0.01) }"
  kept "$ranks" 1e-1 1000000 normal
  expect "$(chose)" 5:1 "5 bits do for a budget of 1e-1 on $ranks ranks"
  five=$(report report.json bytes sent)
  plain=$(report report.json bytes plain)
  holds "bytes: $five < $eight < $plain" test $((4 * five)) -lt $((3 * eight)) -a \
    $((10 * eight)) -lt $((3 * plain))
done
kept 3 1e-3 100000 normal
expect "$(chose)" 12:1 "12 bits do for a budget of 1e-3"
SLIMPI_VERIFY=1 kept 3 5e-5 100000 normal
expect "$(chose)" 16:1 "16 bits do for a budget of 5e-5"
kept 3 1e-1 100000 zeros
expect "$(chose)" 1:1 "zeros take the cheapest codec"
# The ranks learn from sum to sum.
kept 3 1e-5 100000 offset 40
holds "a large offset takes the cheapest codec: $(chose)" test \
  "$(report report.json codecs 1 calls)" -ge 20
kept 3 1e-1 100000 uniform 30
holds "a bound that is not tight takes fewer bits: $(chose)" test \
  "$(report report.json codecs 4 calls)" -ge 20
kept 3 1e-1 100000 "partly cancelling"
expect "$(chose)" 12:1 "12 bits do where a half cancels"
for kind in cancelling opposite; do
  kept 3 1e-1 100000 "$kind"
  expect "$(chose)" float32:1 "where addends cancel the sum is exact: $kind"
done
kept 3 1e-3 100000 "beyond 16-bit floats"
expect "$(chose)" 12:1 "what 16-bit floats cannot hold"

# An infinity or a NaN leaves nothing to measure: exact floats.
SLIMPI_MAX_ERROR=1e-1 holds "infinities and NaNs pass" under 3 "$program" 1e-1 1000 nonfinite
expect "$(chose)" float32:1 "they go as floats"

# An option that cannot keep a bound of the error is refused.
refused() {
  if SLIMPI_MAX_ERROR=1e-2 under 2 "$program" 1e-2 100 >/dev/null 2>errors.txt; then
    fail "$1 should be refused"
  else
    holds "refused: $1" grep -q "$1" errors.txt
  fi
}
SLIMPI_ALGORITHM=fp16 refused \
  "SLIMPI_MAX_ERROR cannot be combined with fp16; accepted: bytegrad, qsgd"
SLIMPI_ERROR_FEEDBACK=1 refused "SLIMPI_ERROR_FEEDBACK=1 cannot be combined with SLIMPI_MAX_ERROR"
