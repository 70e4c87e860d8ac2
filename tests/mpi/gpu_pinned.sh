#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies between a GPU and host memory are of pinned memory, inside a node and between nodes, on the
# fake driver, which counts the others.
. "$top_srcdir/tests/helper/mpi.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_ALGORITHM=allreduce
slow='memory that the ranks of a node share are slow'

# run RANKS LINES WHAT [ARGUMENT...]; LINES: how often it is said that copies are slow
run() {
  ranks=$1 lines=$2 what=$3
  shift 3
  shows "$what" under "$ranks" "$top_builddir/tests/gpu/pinned" "$@"
  expect "$(grep -c "$slow" err.txt)" "$lines" "$what: what is said"
}

SLIMPI_INTRA=shm run 2 0 "a node of two"
export SLIMPI_RANKS_PER_NODE=2
SLIMPI_INTRA=shm run 4 0 "nodes of two, through host memory" shared
run 4 0 "nodes of two, with buffers in host memory, too" shared mixed
SLIMPI_INTRA=mpi run 4 0 "nodes of two, by messages"
SLIMPI_RANKS_PER_NODE=1 run 2 0 "between nodes"
SLIMPI_INTRA=shm run 4 4 "a driver that pins nothing" shared refuse
run 4 2 "the same, with buffers in host memory, too" shared mixed refuse

# Every algorithm, on two nodes of two. The bound of the error and its check are the first's.
export SLIMPI_START=0 SLIMPI_PEERS=ring SLIMPI_INTRA=auto
for algorithm in $(sed -n 's/^SLIMPI_ALGORITHM(\([a-z0-9_]*\),.*/\1/p' \
  "$top_srcdir/src/options/algorithms.def"); do
  case $algorithm in
    name) continue ;; # of the comment
    hook) continue ;; # works on a copy in pinned memory
    bytegrad | powersgd | low_precision_decentralized) ;;
    *) expensive || continue ;;
  esac
  SLIMPI_ALGORITHM=$algorithm run 4 0 "$algorithm" lossy
done
SLIMPI_ALGORITHM=bytegrad SLIMPI_MAX_ERROR=0.01 run 4 0 "a bound of the error" lossy
