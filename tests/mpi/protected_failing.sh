#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A device that fails on one rank: an MPI error on every rank, or all of them do without; no hang.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0 UCX_LOG_LEVEL=error
seconds=60
program=$top_builddir/tests/mpi/protected_failing

# with_fault FAULT RANKS PER-NODE ALGORITHM [OPTION=VALUE...]
with_fault() {
  run="$*" fault=$1 ranks=$2 per_node=$3 algorithm=$4
  shift 4
  # shellcheck disable=SC2086 # words
  shows "$run" under "$ranks" env SLIMPI_RANKS_PER_NODE="$per_node" \
    SLIMPI_ALGORITHM="$algorithm" "$@" "$program" $fault
}
run() {
  with_fault lost "$@"
  with_fault memory "$@"
}
run 3 1 bytegrad
deeper run 2 1 bytegrad SLIMPI_ERROR_FEEDBACK=1
run 4 2 bytegrad SLIMPI_INTRA=shm
run 4 2 bytegrad SLIMPI_INTRA=mpi
deeper run 4 2 bytegrad SLIMPI_HIERARCHY=leader
run 3 1 decentralized SLIMPI_PEERS=all
for algorithm in low_precision_decentralized powersgd; do
  with_fault lost 3 1 $algorithm SLIMPI_PEERS=all SLIMPI_START=0
  with_fault 'memory any' 3 1 $algorithm SLIMPI_PEERS=all SLIMPI_START=0
done
with_fault memory 2 0 bytegrad

# One line tells of the lost device, on the rank that lost it.
SLIMPI_RANKS_PER_NODE=1 under 2 "$program" lost >out.txt 2>err.txt || fail "exit status $?"
holds "the rank with the device says it" \
  grep -q 'slimpi\[1\] error: the protected device is lost' err.txt
