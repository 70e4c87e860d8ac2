#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What waiting costs where others use the machine too: 1 MiB by MPI and by slimpi, with and without
# processes of the lowest priority that are always ready to run, for a rank a core, one more, and
# two. Run by `make bench`.
set -eu
library=${1:-$top_builddir/.libs/libslimpi.so}
cores=$(nproc) busy=

run() { # ranks, what, [-genv NAME VALUE]
  ranks=$1
  echo "$2"
  shift 2
  # shellcheck disable=SC2086 # one word a process
  timeout -k 5 240 "${MPIEXEC:-mpiexec}" -n "$ranks" -genv LD_PRELOAD "$library" \
    -genv UCX_LOG_LEVEL error "$@" "$top_builddir/tests/bench/waiting" 40 1024 $busy
}

for ranks in $cores $((cores + 1)) $((2 * cores)); do
  run "$ranks" "$ranks ranks on one node" -genv SLIMPI_INTRA shm
done
run $((2 * cores)) "$((2 * cores)) ranks, each a node" -genv SLIMPI_RANKS_PER_NODE 1
trap 'kill $busy 2>/dev/null || :' EXIT
for _ in 1 2 3 4 5; do
  nice -n 19 sh -c 'while :; do :; done' &
  busy="$busy $!"
done
run "$cores" "$cores ranks on one node, 5 processes of the lowest priority" -genv SLIMPI_INTRA shm
run "$cores" "$cores ranks, each a node, 5 processes of the lowest priority" \
  -genv SLIMPI_RANKS_PER_NODE 1
