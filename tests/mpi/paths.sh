#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One job on unlike CPUs: ranks that take different code paths hold the same bytes after every
# call, and these are the bytes of a job in which all take the plainest. For every algorithm.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
program=$top_builddir/tests/mpi/paths
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
wide=generic wider=generic
if grep -q avx2 /proc/cpuinfo; then wide=avx2 wider=avx2; fi
if grep -q avx512vl /proc/cpuinfo; then wider=avx512; fi

job() { # CPU CPU CPU ARGUMENT...: three ranks
  first=$1 second=$2 third=$3
  shift 3
  timeout -k 5 "$seconds" "$MPIEXEC" -genv LD_PRELOAD "$preload" \
    -n 1 -env SLIMPI_CPU "$first" "$program" "$@" : \
    -n 1 -env SLIMPI_CPU "$second" "$program" "$@" : \
    -n 1 -env SLIMPI_CPU "$third" "$program" "$@" </dev/null
}

row() { # `alike|own NAME=VALUE...`: the algorithm and its options, without SLIMPI_
  kind=$1
  shift
  what="$*"
  (
    for option in "$@"; do export "SLIMPI_$option"; done
    job generic generic generic "$kind" plain.txt
    job "$wider" generic "$wide" "$kind" mixed.txt
  ) || fail "$what: exit status $?"
  same plain.txt mixed.txt "$what"
}

row alike ALGORITHM=bytegrad
deeper row alike ALGORITHM=bytegrad BITS=3 BUCKET=100
row alike ALGORITHM=bytegrad BITS=5 BUCKET=0
row alike ALGORITHM=bytegrad BITS=4 ROUNDING=stochastic
row alike ALGORITHM=bytegrad BITS=2 ERROR_FEEDBACK=1
deeper row alike ALGORITHM=bytegrad MAX_ERROR=1e-2
row alike ALGORITHM=qsgd
deeper row alike ALGORITHM=qsgd BITS=4 ERROR_FEEDBACK=1
row alike ALGORITHM=fp16
deeper row alike ALGORITHM=bf16 ERROR_FEEDBACK=1
deeper row alike ALGORITHM=allreduce
row alike ALGORITHM=powersgd START=0 POWERSGD_RANK=3 POWERSGD_SHAPES=5000=100x50
deeper row alike ALGORITHM=batched_powersgd START=0 POWERSGD_RANK=3
row own ALGORITHM=decentralized
deeper row own ALGORITHM=decentralized PEERS=shift_one
row own ALGORITHM=low_precision_decentralized
deeper row own ALGORITHM=low_precision_decentralized BITS=4 PEERS=all

# A codec of the user's own: what slimpi adds is the same, too.
if [ -n "${MPICC:-}" ]; then
  "$MPICC" -O2 -shared -fPIC -I"$top_srcdir/include" -o topk.so \
    "$top_srcdir/tests/programs/hook_topk.c" -lm || fail "the hook does not compile"
  row alike ALGORITHM=hook:$work/topk.so ERROR_FEEDBACK=1
fi
verdict
