#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs that use a GPU beside the sums, and drivers that lack something, on the fake driver.
# tests/gpu/sums has memory pools, managed memory and two GPUs in one process.
. "$top_srcdir/tests/helper/mpi.sh"
fake_driver=$top_builddir/tests/fake_driver
[ -e "$fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_ALGORITHM=allreduce
program=$top_builddir/tests/gpu/habits seconds=60

run() { # WHAT HABIT
  shows "$1" under 4 "$program" "$2"
}
said() { # TIMES LINE WHAT
  expect "$(grep -c "$2" err.txt)" "$1" "$3"
}

for per_node in 1 2; do
  export SLIMPI_RANKS_PER_NODE=$per_node
  run "expandable segments, $per_node a node" virtual
  run "a stream of the program's own, $per_node a node" streams
  run "a graph that another thread captures, $per_node a node" capture
  run "the GPU is reset, $per_node a node" reset
  run "a child process, $per_node a node" fork
done

# A driver without a function: GPU memory is left to an MPI that takes it, on all ranks.
need sed
old() { # FUNCTION LINES LINE WHAT
  mkdir -p "$1"
  sed "s/$1/_${1#?}/g" "$fake_driver/libcuda.so.1" >"$1/libcuda.so.1"
  LD_LIBRARY_PATH=$work/$1 run "a driver without $1" plain
  said "$2" "$3" "$4"
}
SLIMPI_RANKS_PER_NODE=1
old cuCtxGetId 0 'too old' "which is not needed"
old cuThreadExchangeStreamCaptureMode 0 'too old' "which is not needed"
preload=$preload:$top_builddir/tests/helper/.libs/libaware_mpi.so
old cuMemsetD32Async 4 'is left to MPI: the CUDA driver is too old, it has no cuMemsetD32' \
  "each rank says so"
said 4 'memory of an NVIDIA GPU go to MPI on all ranks' "and what becomes of the sums"
SLIMPI_BUFFERS=host run "CUDA that is not wanted" plain
said 4 'memory of an NVIDIA GPU go to MPI on all ranks' "the driver's memory is foreign then"
