#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Algorithms of the user's own: a codec and a strategy, built as slimpi_hook(3) says, and the
# example that stands there.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
: "${MPICC:=mpicc}"
need "$MPICC"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1

build() {
  holds "$1 compiles without a warning" "$MPICC" -std=c99 -Wall -Wextra -Werror -O2 -shared -fPIC \
    -I"$top_srcdir/include" ${3-} -o "$work/$1.so" "$2" -lm
}
build topk "$top_srcdir/tests/programs/hook_topk.c"
build sign "$top_srcdir/tests/programs/hook_sign.c"
build careless "$top_srcdir/tests/programs/hook_failing.c" -DCARELESS
build own "$top_srcdir/tests/programs/hook_failing.c" -DKIND=SLIMPI_HOOK_STRATEGY
# A rule may name a hook by a path with capital letters and a plus sign.
mkdir -p "$work/Some+Place"
cp "$work/topk.so" "$work/Some+Place/Top.so"
echo "* * * hook:$work/Some+Place/Top.so *" >rules.txt

# `own` gives each rank its own values: two values of rank 0 are lost on the two other ranks.
export SLIMPI_ALGORITHM="hook:$work/topk.so"
careless=algorithm=hook:$work/careless.so sign=algorithm=hook:$work/sign.so
rows <<END
top-k of one value              | 3   |                            | hooks exact 1
top-k of 129 sparse values      | 3   |                            | hooks exact 129
top-k of 200001                 | 3   |                            | hooks exact 200001
+ top-k of 63                   | 3   |                            | hooks exact 63
+ top-k of 64                   | 3   |                            | hooks exact 64
+ top-k of 65535                | 3   |                            | hooks exact 65535
top-k on 4 ranks                | 4   |                            | hooks exact 70000 \
  | compressed=2; algorithm=$SLIMPI_ALGORITHM
top-k on 2 nodes, flat          | 4/2 | hierarchy=flat             | hooks nodes 100000
top-k on 2 nodes, leader        | 4/2 | hierarchy=leader           | hooks nodes 100000
top-k on 2 nodes, sharded       | 4/2 | hierarchy=sharded          | hooks nodes 100000
top-k on nodes of 2 and 1       | 3/2 |                            | hooks nodes 100000
top-k with error feedback       | 3   | error_feedback=1           | hooks feedback 20000
top-k, steps not finite         | 3   | error_feedback=1           | feedback steps
infinities and NaNs             | 4   | $careless                  | hooks ugly 3001
infinities and NaNs, nodes of 2 | 4/2 | $careless                  | hooks ugly 3001
infinities and NaNs, feedback   | 3   | $careless error_feedback=1 | hooks ugly 3001
sign majority on 2 ranks        | 2   | $sign                      | hooks sign 50001
+ sign majority on 3 ranks      | 3   | $sign                      | hooks sign 50001
sign majority, bytes it says    | 4   | $sign | hooks sign 50001 | bytes.sent=$((2 * 4 * 6251))
sign majority on 2 nodes        | 4/2 | $sign                      | hooks sign 777
a hook that loses a NaN         | 3   | algorithm=hook:$work/own.so verify=1 | hooks lost 1000 \
  | error.beyond_bound=4; \
    err 1+ element 3 of a sum of 1000 is 3 where MPI.s is -*nan: a defect of the hook
a rule names the hook           | 3   | algorithm=bytegrad rules=$work/rules.txt \
  | hooks exact 100000 | compressed=2
top-k of dense values           | 3   |  | hooks sparse 100000 | bytes.sent<bytes.plain
END

# The example of the manual page is compiled as it stands there.
sed -n '/^\.\\" example begins/,/^\.\\" example ends/{/^\./!p;}' "$top_srcdir/man/slimpi_hook.3" |
  sed 's/\\e/\\/g; s/^\\&//' >example.c
holds "the manual page has an example" grep -q slimpi_hook example.c
build example example.c
rows <<END
the example sums                 | 3 | algorithm=hook:$work/example.so verify=1 \
  | hooks near 100000 | error.max_rel_l2>0; error.max_rel_l2<0.02
the example, infinities and NaNs | 3 | algorithm=hook:$work/example.so | hooks ugly 70001
END
