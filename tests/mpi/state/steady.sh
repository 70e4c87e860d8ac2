#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# After the first calls of a size slimpi allocates no memory in a call.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_RANKS_PER_NODE=1 UCX_LOG_LEVEL=error
# A sanitizer has allocation functions of its own.
[ -z "$sanitizer" ] || skip "the sanitizer's allocation functions stand in the way"
preload=$preload:$top_builddir/tests/helper/.libs/liballocations.so
hook topk topk
hook sign sign
low=low_precision_decentralized

# steady COUNT WARM CALLS FUNCTION
rows "out 1 ^0 allocations in [0-9]* calls$" <<END
bytegrad                     | 2   |                           | steady 16384 100 50 Allreduce
qsgd                         | 2   | algorithm=qsgd            | steady 100000 100 50 Allreduce
+ fp16                       | 2   | algorithm=fp16            | steady 16384 100 50 Allreduce
error feedback               | 2   | error_feedback=1          | steady 16384 100 50 Allreduce
a reduce-scatter             | 2   |                           | steady 16384 100 50 Reduce_scatter
nodes of two and one         | 3/2 | error_feedback=1          | steady 16384 100 50 Reduce_scatter
powersgd                     | 2   | algorithm=powersgd        | steady 16384 100 50 Allreduce
decentralized                | 2   | algorithm=decentralized   | steady 16384 100 50 Allreduce
+ peers that change          | 2   | algorithm=decentralized peers=shift_one \
  | steady 16384 100 50 Allreduce
all peers                    | 2   | algorithm=decentralized peers=all \
  | steady 16384 100 50 Allreduce
+ every third call           | 2   | algorithm=decentralized interval=3 \
  | steady 16384 100 50 Allreduce
low precision                | 2   | algorithm=$low            | steady 16384 100 50 Allreduce
+ low precision, all peers   | 2   | algorithm=$low peers=all  | steady 16384 100 50 Allreduce
+ low precision, every third | 2   | algorithm=$low interval=3 | steady 16384 100 50 Allreduce
messages inside nodes        | 4/2 | intra=mpi                 | steady 65536 100 50 Allreduce
the Bruck schedule           | 61  | bucket=64 min_size=0      | steady 4099 3 3 Allreduce
one node                     | 2/2 |                           | steady 65536 100 50 Allreduce
SLIMPI_MAX_ERROR             | 2   | max_error=1e-2            | steady 300000 100 50 Allreduce
+ SLIMPI_MAX_ERROR, repeated | 2   | max_error=1e-9            | steady 16384 100 50 Allreduce
buckets longer than tiles    | 4/2 | max_error=1e-2 bucket=0   | steady 300000 20 10 Allreduce
SLIMPI_VERIFY, every second  | 2   | verify=2                  | steady 16384 100 50 Allreduce
the hook topk                | 2   | algorithm=hook:$work/topk.so | steady 16384 100 50 Allreduce
the hook sign                | 2   | algorithm=hook:$work/sign.so | steady 16384 100 50 Allreduce
left to MPI                  | 2   | algorithm=off             | steady 16384 100 50 Allreduce
too small                    | 2   |                           | steady 1000 100 50 Allreduce
END

# The process has memory that MPI cannot access, but these buffers are not in it.
preload=$preload:$top_builddir/.libs/libslimpi_protected.so
rows "out 1 ^0 allocations in [0-9]* calls$" <<END
left to MPI, with a device   | 2   | algorithm=off             | steady 16384 100 50 Allreduce
+ reduce-scatter, with a device | 2 | algorithm=off            | steady 16384 100 50 Reduce_scatter
nonblocking, with a device   | 2   | algorithm=off             | steady 16384 100 50 Iallreduce
END
