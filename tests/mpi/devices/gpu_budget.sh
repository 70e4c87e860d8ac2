#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Sums of GPU buffers on the fake driver, which counts: how many functions of CUDA's driver a sum
# calls; and how often a call asks about its buffers, which is once about each, whatever is done
# with it, and never about the heap, static data and the stack. Long sums, of many messages, have
# the bytes of host buffers.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
[ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || skip "the fake driver is not built"
export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
seconds=200
# A codec: a strategy would make MPI calls of its own, which ask for their own buffers.
hook codec failing

# One query of two attributes for each buffer and call, done by slimpi or left to MPI.
rows <<END
queries                        | 2/0 |                     | gpu/queries
queries: feedback              | 2   | error_feedback=1    | gpu/queries between | compressed>0
queries: SLIMPI_VERIFY         | 2   | verify=1            | gpu/queries between | compressed>0
queries: auto                  | 2   | algorithm=auto      | gpu/queries between | compressed>0
queries: an error bound        | 2   | max_error=0.01      | gpu/queries between | compressed>0
queries: low precision         | 2   | algorithm=low_precision_decentralized | gpu/queries between \
  | compressed>0
queries: powersgd              | 2   | algorithm=powersgd start=1 | gpu/queries between \
  | compressed>0
queries: off                   | 2   | algorithm=off | gpu/queries between | compressed=0; float32=0
+ queries: bytegrad            | 2   | algorithm=bytegrad  | gpu/queries between | compressed>0
+ queries: allreduce           | 2   | algorithm=allreduce | gpu/queries between | float32>0
+ queries: decentralized       | 2   | algorithm=decentralized | gpu/queries between | float32>0
+ queries: before SLIMPI_START | 2   | start=1000000 | gpu/queries between | compressed=0; float32=0
queries: an estimate           | 2   | estimate=$work/estimate.txt | gpu/queries between \
  | compressed=0; float32=0
queries: a hook                | 2   | algorithm=hook:$work/codec.so | gpu/queries between \
  | compressed>0
queries: 2 nodes of 2 ranks    | 4/2 |                     | gpu/queries between
# Budgets: MiB, calls of the driver, copies among them. They are what was counted and a little more:
# a stream that was seen idle waits anew for the program's own work, and how often it is seen so is
# chance. Lower them when the code needs fewer. Kernels use the messages in pinned memory.
budget: 64 MiB, two nodes      | 2   |                     | gpu/queries 64 660 0
+ budget: 64 MiB, four nodes   | 4   |                     | gpu/queries 64 760 0
budget: 1 MiB, two nodes       | 2   |                     | gpu/queries 1 65 0
budget: 1 MiB, four nodes      | 4   |                     | gpu/queries 1 110 0
END

if expensive; then export LONG=5; else export LONG=1; fi
rows <<END
long: three ranks        | 3   | bits=4 error_feedback=1 | gpu/sums
+ long: two ranks        | 2   |                         | gpu/sums
+ long: two nodes of two | 4/2 | hierarchy=leader        | gpu/sums
END
