#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Random communicators, options and sums, each checked (fuzz.cpp): a few seeds with much in common
# with real jobs, and others under signals, fork, and limits. Longer, by hand:
#   make check TESTS=tests/fuzz/fuzz.sh FUZZ_SECONDS=600 [FUZZ_SEED=1000]
# goes through seeds, each with other ranks, options and disturbances, until the time is over.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export UCX_LOG_LEVEL=error SLIMPI_CALLS=allreduce,reduce_scatter,allgather
program=$top_builddir/tests/fuzz/fuzz

# fuzz RANKS SEED STEPS 'NAME=VALUE...' 'WORD...': names without SLIMPI_; leaves the digest of the
# results in $digest.
fuzz() {
  ranks=$1 seed=$2 steps=$3 options=$4 words=$5
  what="$ranks ranks, seed $seed, $steps steps, $options $words"
  (
    for option in $options; do
      case $option in
        FUZZ_*) export "${option?}" ;;
        *) export "SLIMPI_$option" ;;
      esac
    done
    # shellcheck disable=SC2086
    under "$ranks" $program "$seed" "$steps" $words || {
      status=$?
      # In a long run, a time limit is no failure of the library if MPI alone hangs with the same
      # steps.
      if [ -n "${FUZZ_SECONDS:-}" ] && [ "$status" = 124 ]; then
        alone=0
        plain "$ranks" $program "$seed" "$steps" $words plain || alone=$?
        [ $alone != 124 ] || exit 75
      fi
      exit "$status"
    }
  ) >out.txt 2>err.txt || {
    status=$? digest=none
    if [ "$status" = 75 ]; then
      echo "NOTE $what: MPI alone hangs, too"
      return 0
    fi
    fail "$what: exit status $status"
    grep -v '^slimpi.*warning' err.txt | head -n 20
    return 0
  }
  # SLIMPI_VERIFY, which some communicators have, is never wrong.
  if grep -h 'a defect of' err.txt; then fail "$what: SLIMPI_VERIFY"; else pass "$what"; fi
  tail -n 1 out.txt
  digest=$(sed -n 's/.*digest //p' out.txt | tail -n 1)
}

# The results of a seed are the same however they are made.
alike_results() { # RANKS SEED STEPS 'NAME=VALUE...' 'OTHER=VALUE...' 'WORD...'
  fuzz "$1" "$2" "$3" "$4" ""
  first=$digest
  fuzz "$1" "$2" "$3" "$4 $5" "$6"
  expect "$digest" "$first" "the same results"
}

# Draws the work of a seed of a long run: ranks, a base of options, a disturbance.
draw_row() {
  ranks=$((2 + seed % 7))
  [ $((seed % 23)) != 0 ] || ranks=16
  per_node=$((1 + seed / 7 % 3))
  options="RANKS_PER_NODE=$per_node MIN_SIZE=0"
  case $((seed / 3 % 8)) in
    0) options="$options ALGORITHM=qsgd BITS=4 BUCKET=512" ;;
    1) options="$options HIERARCHY=leader BITS=3" ;;
    2) options="$options INTRA=mpi BUCKET=0" ;;
    3) options="$options ALGORITHM=auto" ;;
    4) options="$options INTRA=shm" ;;
    5) options="$options ERROR_FEEDBACK=1 BITS=5" ;;
    6) options="RANKS_PER_NODE=$per_node" ;;
  esac
  case $((seed % 11)) in
    1) words="signals:2000" ;;
    2) words="fork" ;;
    3) words="files:$((seed % 4))" ;;
    4) words="float" options="$options RANKS_PER_NODE=1 FUZZ_NODES=fixed" ;;
    5) words="empty" ;;
    6) words="empty stack:262144" ;;
    7) words="renew:2000" ;;
    8) words="mesh" options="$options VERIFY=1" ;;
    *) words="" ;;
  esac
}

if [ -n "${FUZZ_SECONDS:-}" ]; then
  seed=${FUZZ_SEED:-1}
  end=$(($(date +%s) + FUZZ_SECONDS))
  while [ "$(date +%s)" -lt "$end" ]; do
    draw_row
    fuzz "$ranks" "$seed" 100000 "$options" "seconds:${FUZZ_JOB_SECONDS:-10} $words"
    seed=$((seed + 1))
  done
  exit
fi

one="MIN_SIZE=0 RANKS_PER_NODE=1"
alike_results 2 11 120 "$one" "PROGRESS=thread" ""
alike_results 3 12 40 "$one FUZZ_NODES=fixed" "" float
alike_results 4 13 25 "MIN_SIZE=0 RANKS_PER_NODE=2 INTRA=shm" INTRA=mpi ""
fuzz 2 14 80 "$one BITS=4 BUCKET=0" "signals:2000"
fuzz 2 15 60 "$one ALGORITHM=qsgd" "fork"
fuzz 3 16 40 "MIN_SIZE=0 RANKS_PER_NODE=2" "files:1"
fuzz 2 17 100 "$one ALGORITHM=auto" ""
fuzz 2 21 100 "$one" "memory:4000000"
fuzz 5 18 20 "MIN_SIZE=0 RANKS_PER_NODE=2 HIERARCHY=leader" ""
fuzz 8 24 6 "MIN_SIZE=0 RANKS_PER_NODE=3" ""
fuzz 16 20 3 "MIN_SIZE=0 RANKS_PER_NODE=4" ""
# MPICH 4.0.2 by itself needs more than 128 KiB of stack.
fuzz 3 31 60 "MIN_SIZE=0 RANKS_PER_NODE=1 VERIFY=1" "empty stack:262144"
fuzz 4 32 15 "MIN_SIZE=0 RANKS_PER_NODE=1 VERIFY=1" mesh
fuzz 2 33 5 "MIN_SIZE=0 RANKS_PER_NODE=1 VERIFY=1" "renew:2000"
