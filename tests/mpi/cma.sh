#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_INTRA=cma: ranks of a node read each other's buffers in place, with the bytes of every
# other transport. Where the kernel refuses that, they use shared memory, and a failure in a call is
# an error on every rank.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
: "${CC:=cc}"
$CC -shared -fPIC -o stub.so "$top_srcdir/tests/mpi/cma_stub.c" || fail "building stub.so"
# UCX reads in place, too; the stub is about slimpi's reads only.
export UCX_TLS=self,posix SLIMPI_INTRA=cma CMA_COUNT=$work/count.txt
one_node=$top_builddir/tests/mpi/one_node
stubbed() { # RANKS COMMAND...: run it with the stub in front
  ranks=$1
  shift
  rm -f count.txt
  timeout -k 5 "$seconds" "$MPIEXEC" -n "$ranks" -genv LD_PRELOAD "$work/stub.so:$preload" "$@" \
    2>err.txt </dev/null
}
calls() { sort -n count.txt | tail -1; } # of the rank that made most

stubbed 2 true || fail "the stub does not load"
stubbed 2 "$one_node" || fail "two ranks on one node"
[ "$(calls)" -gt 1 ] || fail "two ranks on one node read nothing in place"
if grep -q 'cma cannot be used' err.txt; then skip "the kernel refuses process_vm_readv here"; fi
expect "$(cat err.txt)" "" "two ranks on one node: not a word on stderr"
holds "they read in place: $(calls) times" test "$(calls)" -gt 20

# Sums before and after the exchange between nodes: the results that golden.txt remembers.
for row in allreduce fp16; do
  SLIMPI_RANKS_PER_NODE=2 SLIMPI_MIN_SIZE=0 SLIMPI_ALGORITHM=$row \
    stubbed 4 "$top_builddir/tests/mpi/golden" $row-2 >got.txt || fail "two nodes of two: $row"
  grep "^$row-2 " "$top_srcdir/tests/mpi/golden.txt" >want.txt
  same want.txt got.txt "two nodes of two, $row: the bytes are the same"
  holds "$row: read in place $(calls) times" test "$(calls)" -gt 2
done

# Floating-point environments and NaNs are MPI's own matter here, too.
export SLIMPI_RANKS_PER_NODE=8
for environment in default ftz up ftz-one; do
  holds "environment $environment" under 3 "$top_builddir/tests/mpi/float_environment" \
    $environment 4 100003
done

CMA_REFUSE=1 stubbed 3 "$one_node" || fail "a kernel that refuses"
expect "$(grep -c 'SLIMPI_INTRA=cma cannot be used here' err.txt)" 1 "said once that it is refused"
CMA_REFUSE=1 SLIMPI_INTRA=auto stubbed 3 "$one_node" || fail "a kernel that refuses, auto"
expect "$(cat err.txt)" "" "auto: not a word where it is refused"

# Only one rank is refused: all use shared memory.
rm -f count.txt
holds "one rank is refused" timeout -k 5 "$seconds" "$MPIEXEC" \
  -n 1 -env LD_PRELOAD "$work/stub.so:$preload" -env CMA_REFUSE 1 "$one_node" : \
  -n 2 -env LD_PRELOAD "$work/stub.so:$preload" "$one_node" </dev/null

if CMA_FAIL_AFTER=12 stubbed 2 "$one_node" >out.txt; then
  fail "a read that fails goes unnoticed"
fi
holds "the error names the way out" grep -q 'cannot be read: Bad address; SLIMPI_INTRA=shm' err.txt
verdict
