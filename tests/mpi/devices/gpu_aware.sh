#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Where MPI says that it takes device memory, messages between nodes go out of it and into it, and
# what is left to MPI goes there as it is; the bytes are those of host memory, whichever ranks have
# a GPU-aware MPI.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_RANKS_PER_NODE=1
export SLIMPI_BUCKET=2048 # kernels write messages of shorter buckets where MPI takes them
said='MPI takes device memory'
message_bytes() { sed -n 's/^message bytes //p' out.txt; }

rows <<END
MPI alone takes no device memory | 2 |  | protected | err 0 $said
END
staged=$(message_bytes)
preload=$preload:$top_builddir/tests/helper/.libs/libaware_mpi.so
rows <<END
MPI says that it takes it | 2 |  | protected | err 2 $said
END
headers=$(message_bytes)
expect "$((headers % 48))" 0 "nothing but headers passes through the host: $headers bytes"
holds "which is little of $staged" test "$headers" -gt 0 -a "$((headers * 50))" -lt "$staged"

# One of three ranks has a GPU-aware MPI. In some sums, buffers of the other ranks lie in host
# memory.
avoid_deadly_calls "$top_builddir/tests/mpi/devices/bypass_device"
rows <<END
rank 0 alone                | 3   | AWARE_RANK=0 bits=3 error_feedback=1 | protected
rank 1 alone, low precision | 3   | AWARE_RANK=1 algorithm=low_precision_decentralized | protected
allreduce, nodes of two     | 4/2 | algorithm=allreduce hierarchy=sharded | protected
fp16                        | 2   | algorithm=fp16 | protected
calls that are left to MPI  | 2   | min_size=64K   | bypass_device once | buffers.staged=0
END

# The ranks still check the headers: of messages to the owner, and of messages from it. The third
# message of each kind is the first one of device memory.
alone=$preload
preload=$preload:$top_builddir/tests/mpi/failures/.libs/libfaults.so
rows <<END
damaged, to the owner   | 2 | TEST_FAULT=damaged:1:3 | protected \
  | fails; err 1+ its header is damaged
damaged, from the owner | 2 | TEST_FAULT=damaged:0:3 | protected \
  | fails; err 1+ its header is damaged
short, to the owner     | 2 | TEST_FAULT=short:1:3 | protected | fails; err 1+ bytes of payload came
short, from the owner   | 2 | TEST_FAULT=short:0:3 | protected | fails; err 1+ bytes of payload came
END
preload=$alone

# The same holds with the GPU's own kernels and streams.
if [ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ]; then
  export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  rows <<END
a GPU, on rank 2 alone | 3 | AWARE_RANK=2 | gpu/sums | err 1 $said
END
fi
