#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Large sums of several ranks on each node, where the ranks read each other's buffers in place: the
# work inside the nodes is done in pieces while the exchange between nodes runs, with the bytes that
# it gives before and after the exchange. A failed read is an error on every rank.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
: "${CC:=cc}"
$CC -shared -fPIC -o stub.so "$top_srcdir/tests/mpi/cma_stub.c" || fail "building stub.so"
golden=$top_builddir/tests/mpi/golden
# UCX reads in place, too; the stub is about slimpi's reads only.
export UCX_TLS=self,posix

sums() { # INTRA RANKS PER_NODE [ARGUMENT...]: digests
  intra=$1 ranks=$2 per_node=$3
  shift 3
  SLIMPI_INTRA=$intra SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_TRACE=$work/$intra.json \
    under "$ranks" "$golden" "$@"
}
pieces() { # FILE: node sums in a trace
  grep -c '"name":"node sum"' "$1"
}

# Where the kernel refuses that, cma says so once, and auto not a word.
refused() { # SLIMPI_INTRA
  SLIMPI_INTRA=$1 timeout -k 5 "$seconds" "$MPIEXEC" -n 3 -genv CMA_REFUSE 1 \
    -genv LD_PRELOAD "$work/stub.so:$preload" "$top_builddir/tests/mpi/one_node" \
    2>err.txt </dev/null || fail "a kernel that refuses, $1"
}
# MPICH 5 reads so itself, and breaks where it may not.
refusable=true
timeout -k 5 "$seconds" "$MPIEXEC" -n 3 -genv CMA_REFUSE 1 -genv LD_PRELOAD "$work/stub.so" \
  "$top_builddir/tests/mpi/one_node" </dev/null >plain.txt 2>&1 || refusable=false
if $refusable; then
  refused cma
  expect "$(grep -c 'SLIMPI_INTRA=cma cannot be used here' err.txt)" 1 \
    "said once that it is refused"
  refused auto
  expect "$(cat err.txt)" "" "auto: not a word where it is refused"
else
  echo "SKIP a kernel that refuses: this MPI breaks there without the library, too"
fi

sums cma 4 2 pieces 300001 >/dev/null 2>err.txt || fail "two nodes of two"
if grep -q 'cma cannot be used' err.txt; then skip "the kernel refuses process_vm_readv here"; fi

# The ranks of a node own shards of different lengths. Of 6 ranks in nodes of 4 and 2, only the
# smaller node works in pieces: two ranks of the other own no shard.
compare() { # RANKS PER_NODE COUNT PIECES [in-place]
  what="$*"
  ranks=$1 per_node=$2 count=$3 wanted=$4
  shift 4
  for intra in shm cma auto; do
    sums $intra "$ranks" "$per_node" pieces "$count" "$@" >$intra.txt || fail "$what: $intra"
  done
  same shm.txt cma.txt "$what: cma has the bytes of shm"
  same shm.txt auto.txt "$what: auto has the bytes of shm"
  expect "$(pieces shm.json)" $((3 * ranks)) "$what: shm adds at once"
  if [ "$wanted" = yes ]; then
    holds "$what: cma adds $(pieces cma.json) pieces" test "$(pieces cma.json)" -gt $((9 * ranks))
    # Of three calls auto does the first and the last in pieces.
    expect "$(pieces auto.json)" $(((2 * $(pieces cma.json) + 3 * ranks) / 3)) \
      "$what: auto takes turns"
  else
    expect "$(pieces cma.json)" $((3 * ranks)) "$what: cma adds at once"
  fi
}

for algorithm in bytegrad fp16 allreduce; do
  export SLIMPI_ALGORITHM=$algorithm
  [ $algorithm = bytegrad ] || expensive || continue
  compare 4 2 1000003 yes
  compare 6 2 777777 yes in-place
  deeper compare 6 3 1200000 yes in-place
done
unset SLIMPI_ALGORITHM
compare 4 2 262143 no
compare 6 4 1000003 yes in-place
SLIMPI_HIERARCHY=leader deeper compare 4 2 1000003 no
SLIMPI_BITS=2 SLIMPI_ERROR_FEEDBACK=1 deeper compare 4 2 3000001 yes
SLIMPI_BITS=5 SLIMPI_ROUNDING=stochastic deeper compare 6 3 1200007 yes
SLIMPI_BUCKET=0 deeper compare 4 2 1000003 no
SLIMPI_MAX_ERROR=0.1 deeper compare 4 2 1000003 no

# auto tries both ways, and its ranks agree on them. One node has three ranks, the other one, which
# has nothing to do in pieces and agrees like the others.
many='sum:600000 sum:600000 sum:600000 sum:600000 sum:600000'
# shellcheck disable=SC2086
SLIMPI_INTRA=auto SLIMPI_RANKS_PER_NODE=2 SLIMPI_TRACE=$work/tried.json under 4 \
  "$top_builddir/tests/mpi/steps" init $many $many $many $many finalize >said.txt ||
  fail "auto: twenty sums"
holds "auto tries pieces" test "$(pieces tried.json)" -gt 200
holds "auto tries at once" grep -q '"node copy' tried.json
# shellcheck disable=SC2086
SLIMPI_INTRA=auto SLIMPI_RANKS_PER_NODE=3 under 4 "$top_builddir/tests/mpi/steps" \
  init $many $many $many $many finalize >said.txt || fail "auto: nodes of three and one"

# Where only one rank may read, nobody does.
SLIMPI_INTRA=shm SLIMPI_RANKS_PER_NODE=2 under 4 "$golden" pieces 1000003 >shm.txt || fail "shm"
export SLIMPI_INTRA=cma SLIMPI_RANKS_PER_NODE=2
if $refusable; then
  timeout -k 5 "$seconds" "$MPIEXEC" \
    -n 1 -env LD_PRELOAD "$work/stub.so:$preload" -env CMA_REFUSE 1 "$golden" pieces 1000003 : \
    -n 3 -env LD_PRELOAD "$work/stub.so:$preload" "$golden" pieces 1000003 \
    </dev/null >refused.txt 2>err.txt || fail "one rank is refused"
  same shm.txt refused.txt "one rank is refused: the bytes of shm"
fi

# The fifteenth read is in the middle of the exchange.
if CMA_FAIL_AFTER=15 timeout -k 5 "$seconds" "$MPIEXEC" -n 4 \
  -genv LD_PRELOAD "$work/stub.so:$preload" "$golden" pieces 1000003 </dev/null >out.txt 2>err.txt
then
  fail "a read that fails goes unnoticed"
fi
holds "the error names the way out" grep -q 'cannot be read: Bad address; SLIMPI_INTRA=shm' err.txt
verdict
