#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in the memory of a GPU give the bytes of host buffers. Skips where there is no GPU;
# tests/mpi/devices/fake_driver.sh runs it there, on a fake driver for CUDA's driver.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
[ -e "$top_builddir/.libs/slimpi-cuda.so" ] || skip "the part for GPU memory is not built"
export SLIMPI_MIN_SIZE=0

rows <<END
two nodes             | 2/1 | hierarchy=flat bits=8 bucket=2048 | gpu/sums
three nodes, feedback | 3/1 | hierarchy=flat bits=3 bucket=512 error_feedback=1 | gpu/sums
leaders               | 4/2 | hierarchy=leader bits=4 bucket=0 | gpu/sums
+ shards, feedback    | 4/2 | hierarchy=sharded bucket=4096 error_feedback=1 | gpu/sums
qsgd                  | 3/1 | hierarchy=flat algorithm=qsgd | gpu/sums
+ fp16                | 2/1 | hierarchy=flat algorithm=fp16 | gpu/sums
+ allreduce           | 3/2 | hierarchy=sharded algorithm=allreduce | gpu/sums
two nodes of two      | 4/2 | intra=auto        | gpu/sums
two nodes of two, shm | 4/2 | intra=shm         | gpu/sums
# On one node slimpi makes the sums with a buffer of a GPU on some rank, of 64 KiB and more.
+ one node of two     | 2   | EXACT=1 intra=shm | gpu/sums | exact_in_node>=60; single_node>=6
one node of three     | 3   | EXACT=1 intra=shm | gpu/sums | exact_in_node>=60; single_node>=6
+ one node of four    | 4   | EXACT=1 intra=shm | gpu/sums | exact_in_node>=60; single_node>=6
# The benchmark of whole calls.
end to end            | 2/1 |                   | gpu/end_to_end times.json 64K 1M
END
expect "$("$PYTHON" -c 'import json
print(json.load(open("times.json"))[1]["bytes"])')" 1048576 "the results of the benchmark"

avoid_deadly_calls "$top_builddir/tests/gpu/passing"
for one in blocking nonblocking persistent; do
  by_way $one
  [ $one = blocking ] || rows <<END
one node, $one              | 2   | EXACT=1 SHORT=1 | gpu/sums | exact_in_node>0
END
  rows <<END
calls left to MPI, $one | 2/1 | min_size=64K | gpu/passing
END
done
by_way "${TEST_WAY:-blocking}"

# Only the fake driver can be told to fail. Without cuBLAS, the CPU multiplies.
export SLIMPI_RANKS_PER_NODE=1
lowrank="start=0 powersgd_rank=4 powersgd_shapes=4000=80x50"
if [ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ]; then
  mkdir driver_only
  cp -L "$top_builddir/tests/fake_driver/libcuda.so.1" driver_only/
  fake=LD_LIBRARY_PATH=$top_builddir/tests/fake_driver
  rows <<END
fault: memory           | 3 | $fake | gpu/faults memory
fault: kernels          | 3 | $fake | gpu/faults kernels
fault: lost             | 3 | $fake | gpu/faults lost
fault: stream           | 3 | $fake | gpu/faults stream
fault: copy             | 3 | $fake | gpu/faults copy
powersgd without cuBLAS | 3 | $lowrank algorithm=powersgd LD_LIBRARY_PATH=$work/driver_only \
  | gpu/lowrank 50 4000
END
fi

# Nothing is taken after the first calls, and nothing is left behind.
rows <<END
nothing left behind      | 2 |                                     | gpu/calls ${CALLS:-10000}
ten thousand short calls | 2 |                                     | gpu/calls 10000 256
+ few calls, four ranks  | 4 |                                     | gpu/calls 60
powersgd by cuBLAS       | 3 | $lowrank algorithm=powersgd         | gpu/lowrank 50 4000
+ the last row cut short | 3 | $lowrank algorithm=batched_powersgd | gpu/lowrank 60 3583
+ powersgd, no feedback  | 3 | $lowrank algorithm=powersgd error_feedback=0 | gpu/lowrank 50 4000
END
