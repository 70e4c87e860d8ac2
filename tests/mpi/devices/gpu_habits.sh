#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs that use a GPU beside the sums, and drivers that lack something, on the fake driver.
# tests/gpu/sums has memory pools, managed memory and two GPUs in one process.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
fake_driver=$top_builddir/tests/fake_driver
[ -e "$fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_ALGORITHM=allreduce SLIMPI_RANKS_PER_NODE=1
seconds=60

for per_node in 1 2; do
  rows <<END
expandable segments, $per_node a node                  | 4/$per_node |  | gpu/habits virtual
a stream of the program's own, $per_node a node        | 4/$per_node |  | gpu/habits streams
a graph that another thread captures, $per_node a node | 4/$per_node |  | gpu/habits capture
the GPU is reset, $per_node a node                     | 4/$per_node |  | gpu/habits reset
a child process, $per_node a node                      | 4/$per_node |  | gpu/habits fork
END
done

# Drivers without a function, which is not needed, or without which GPU memory is left to an MPI
# that takes it, on all ranks.
need sed
for function in cuCtxGetId cuThreadExchangeStreamCaptureMode cuMemsetD32Async; do
  mkdir $function
  sed "s/$function/_${function#?}/g" "$fake_driver/libcuda.so.1" >$function/libcuda.so.1
done
path=LD_LIBRARY_PATH=$work left='memory of an NVIDIA GPU go to MPI on all ranks'
rows <<END
no cuCtxGetId          | 4 | $path/cuCtxGetId | gpu/habits plain | err 0 too old
no stream capture mode | 4 | $path/cuThreadExchangeStreamCaptureMode | gpu/habits plain \
  | err 0 too old
END
preload=$preload:$top_builddir/tests/helper/.libs/libaware_mpi.so
rows "err 4 $left" <<END
no cuMemsetD32                       | 4 | $path/cuMemsetD32Async              | gpu/habits plain \
  | err 4 is left to MPI: the CUDA driver is too old, it has no cuMemsetD32
CUDA is not wanted, so it is foreign | 4 | buffers=host $path/cuMemsetD32Async | gpu/habits plain
END
