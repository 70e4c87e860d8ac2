#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Algorithms of the user's own: a codec and a strategy, built as slimpi_hook(3) says, and the
# example that stands there.
. "$top_srcdir/tests/helper/mpi.sh"
: "${MPICC:=mpicc}"
need "$MPICC"
program=$top_builddir/tests/mpi/hooks
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json

build() {
  holds "$1 compiles without a warning" "$MPICC" -std=c99 -Wall -Wextra -Werror -O2 -shared -fPIC \
    -I"$top_srcdir/include" ${3-} -o "$work/$1.so" "$2" -lm
}
build topk "$top_srcdir/tests/programs/hook_topk.c"
build sign "$top_srcdir/tests/programs/hook_sign.c"

export SLIMPI_ALGORITHM="hook:$work/topk.so"
if expensive; then counts='63 64 65535'; else counts=; fi
for count in 1 129 200001 $counts; do
  holds "top-k of $count sparse values on 3 ranks" under 3 "$program" exact $count
done
holds "top-k on 4 ranks" under 4 "$program" exact 70000
expect "$(report report.json calls compressed)" 2 "both calls were taken over"
expect "$(report report.json algorithm)" "$SLIMPI_ALGORITHM" "the report names the hook"
for hierarchy in flat leader sharded; do
  SLIMPI_HIERARCHY=$hierarchy SLIMPI_RANKS_PER_NODE=2 holds "top-k on 2 nodes, $hierarchy" \
    under 4 "$program" nodes 100000
done
SLIMPI_RANKS_PER_NODE=2 holds "top-k on nodes of 2 and 1" under 3 "$program" nodes 100000
holds "top-k of dense values" under 3 "$program" sparse 100000
sent=$(report report.json bytes sent)
holds "fewer bytes than floats: $sent" test "$sent" -lt "$(report report.json bytes plain)"
SLIMPI_ERROR_FEEDBACK=1 holds "top-k with error feedback" under 3 "$program" feedback 20000
SLIMPI_ERROR_FEEDBACK=1 holds "top-k with steps that are not finite" \
  under 3 "$top_builddir/tests/mpi/feedback" steps

build careless "$top_srcdir/tests/programs/hook_failing.c" -DCARELESS
for ranks in 1 2; do
  SLIMPI_ALGORITHM=hook:$work/careless.so SLIMPI_RANKS_PER_NODE=$ranks \
    holds "infinities and NaNs, nodes of $ranks" under 4 "$program" ugly 3001
done
SLIMPI_ALGORITHM=hook:$work/careless.so SLIMPI_ERROR_FEEDBACK=1 \
  holds "infinities and NaNs with error feedback" under 3 "$program" ugly 3001

export SLIMPI_ALGORITHM="hook:$work/sign.so"
for ranks in 2 3 4; do
  [ $ranks != 3 ] || expensive || continue
  holds "sign majority on $ranks ranks" under $ranks "$program" sign 50001
done
sent=$(report report.json bytes sent)
expect "$sent" $((2 * 4 * 6251)) "bytes that the strategy says it sent"
SLIMPI_RANKS_PER_NODE=2 holds "sign majority on 2 nodes" under 4 "$program" sign 777

# The hook gives each rank its own values: two values of rank 0 are lost on the two other ranks.
build own "$top_srcdir/tests/programs/hook_failing.c" -DKIND=SLIMPI_HOOK_STRATEGY
SLIMPI_ALGORITHM="hook:$work/own.so" SLIMPI_VERIFY=1 holds "a hook that loses a NaN" \
  under 3 "$program" lost 1000 2>lost.txt
holds "SLIMPI_VERIFY names it" grep -q \
  'element 3 of a sum of 1000 is 3 where MPI.s is -*nan: a defect of the hook' lost.txt
expect "$(report report.json error beyond_bound)" 4 "two elements on two ranks"

# A rule names the hook, by a path with capital letters and a plus sign.
mkdir -p "$work/Some+Place"
cp "$work/topk.so" "$work/Some+Place/Top.so"
echo "* * * hook:$work/Some+Place/Top.so *" >rules.txt
SLIMPI_ALGORITHM=bytegrad SLIMPI_RULES=$work/rules.txt holds "a rule names the hook" \
  under 3 "$program" exact 100000
expect "$(report report.json calls compressed)" 2 "the rule's calls were taken over"

# The example of the manual page is compiled as it stands there.
sed -n '/^\.\\" example begins/,/^\.\\" example ends/{/^\./!p;}' "$top_srcdir/man/slimpi_hook.3" |
  sed 's/\\e/\\/g; s/^\\&//' >example.c
holds "the manual page has an example" grep -q slimpi_hook example.c
build example example.c
SLIMPI_ALGORITHM="hook:$work/example.so" SLIMPI_VERIFY=1 holds "the example sums" \
  under 3 "$program" near 100000
error=$(report report.json error max_rel_l2)
SLIMPI_ALGORITHM="hook:$work/example.so" holds "the example with infinities and NaNs" \
  under 3 "$program" ugly 70001
holds "the example's error is small: $error" awk "BEGIN { exit !($error > 0 && $error < 0.02) }"
