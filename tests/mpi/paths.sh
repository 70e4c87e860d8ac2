#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One job on unlike CPUs: ranks that take different code paths hold the same bytes after every
# call, and these are the bytes of a job in which all take the plainest. For every algorithm.
. "$top_srcdir/tests/helper/mpi.sh"
need_library
program=$top_builddir/tests/mpi/paths
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
wide=generic wider=generic core=Prescott
if grep -q avx2 /proc/cpuinfo; then wide=avx2 wider=avx2 core=Haswell; fi
if grep -q avx512vl /proc/cpuinfo; then wider=avx512; fi

job() { # CPU CORE CPU CORE CPU CORE ARGUMENT...: three ranks
  first=$1 second=$3 third=$5 one=$2 two=$4 three=$6
  shift 6
  timeout -k 5 "$seconds" "$MPIEXEC" -genv LD_PRELOAD "$preload" \
    -n 1 -env SLIMPI_CPU "$first" -env OPENBLAS_CORETYPE "$one" "$program" "$@" : \
    -n 1 -env SLIMPI_CPU "$second" -env OPENBLAS_CORETYPE "$two" "$program" "$@" : \
    -n 1 -env SLIMPI_CPU "$third" -env OPENBLAS_CORETYPE "$three" "$program" "$@" </dev/null
}

row() { # alike|own NAME=VALUE...: the algorithm and its options, without SLIMPI_
  kind=$1
  shift
  what="$*"
  (
    for option in "$@"; do export "SLIMPI_$option"; done
    job generic Prescott generic Prescott generic Prescott "$kind" plain.txt
    job "$wider" Prescott generic Prescott "$wide" Prescott "$kind" mixed.txt
  ) || fail "$what: exit status $?"
  same plain.txt mixed.txt "$what"
}

row alike ALGORITHM=bytegrad
row alike ALGORITHM=bytegrad BITS=3 BUCKET=100
row alike ALGORITHM=bytegrad BITS=5 BUCKET=0
row alike ALGORITHM=bytegrad BITS=4 ROUNDING=stochastic
row alike ALGORITHM=bytegrad BITS=2 ERROR_FEEDBACK=1
row alike ALGORITHM=bytegrad MAX_ERROR=1e-2
row alike ALGORITHM=qsgd
row alike ALGORITHM=qsgd BITS=4 ERROR_FEEDBACK=1
row alike ALGORITHM=fp16
row alike ALGORITHM=bf16 ERROR_FEEDBACK=1
row alike ALGORITHM=allreduce
row own ALGORITHM=decentralized
row own ALGORITHM=decentralized PEERS=shift_one
row own ALGORITHM=low_precision_decentralized
row own ALGORITHM=low_precision_decentralized BITS=4 PEERS=all

# A codec of the user's own: what slimpi adds is the same, too.
if [ -n "${MPICC:-}" ]; then
  "$MPICC" -O2 -shared -fPIC -I"$top_srcdir/include" -o topk.so \
    "$top_srcdir/tests/programs/hook_topk.c" -lm || fail "the hook does not compile"
  row alike ALGORITHM=hook:$work/topk.so ERROR_FEEDBACK=1
fi

# The low-rank pair takes products of OpenBLAS, which round as the CPU has it. With one kind of it
# the bytes are those of any code path; with several the ranks still agree.
if [ -e "$top_builddir/.libs/slimpi-blas.so" ]; then
  for algorithm in powersgd batched_powersgd; do
    set -- ALGORITHM=$algorithm START=0 POWERSGD_RANK=3 POWERSGD_SHAPES=5000=100x50
    row alike "$@"
    what="$algorithm, other kernels of OpenBLAS"
    (
      for option in "$@"; do export "SLIMPI_$option"; done
      job "$wider" $core generic Prescott "$wide" $core alike blas.txt
    ) && pass "$what" || fail "$what: exit status $?"
  done
  if [ $core != Prescott ] && cmp -s mixed.txt blas.txt; then
    fail "OpenBLAS does not round differently, so nothing is shown"
  fi
fi
verdict
