#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Traces with a device: copies out of the device and into it are slices with their bytes, on rows
# of their own, beside the stages that they overlap. A trace also shows how often the ranks agree
# on the length of messages, which is 3 words.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_TRACE=$work/trace-%r.json
helper=$top_srcdir/tests/helper
export SLIMPI_BUCKET=2048 # kernels write messages of shorter buckets where MPI takes them

for algorithm in bytegrad low_precision_decentralized; do
  SLIMPI_MIN_SIZE=0 SLIMPI_ALGORITHM=$algorithm holds "$algorithm on the protected device" \
    under 2 "$top_builddir/tests/mpi/devices/protected"
  for rank in 0 1; do
    holds "$algorithm: the stages of rank $rank" \
      "$PYTHON" "$helper/python/stages.py" messages "trace-$rank.json" "$algorithm"
  done
  holds "$algorithm: slices nest" "$PYTHON" "$helper/python/nests.py" trace-0.json trace-1.json
done

for intra in shm mpi; do
  SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=$intra holds "$intra inside a node" \
    under 3 "$top_builddir/tests/mpi/devices/protected"
  holds "$intra: copies show" "$PYTHON" "$helper/python/stages.py" inside trace-0.json
  holds "$intra: slices nest" "$PYTHON" "$helper/python/nests.py" trace-0.json trace-1.json
done

whole() { # ALGORITHM NAME
  SLIMPI_MIN_SIZE=0 SLIMPI_START=0 SLIMPI_ALGORITHM=$1 holds "$2 on the protected device" \
    under 2 "$top_builddir/tests/mpi/devices/protected"
  holds "$2: copies show" "$PYTHON" "$helper/python/stages.py" whole trace-0.json "$2"
}
whole powersgd powersgd
if hook topk topk; then whole "hook:$work/topk.so" hook; fi

avoid_deadly_calls "$top_builddir/tests/mpi/devices/bypass_device"
holds "calls that are left to MPI" under 2 "$top_builddir/tests/mpi/devices/bypass_device" once
holds "show their copies" "$PYTHON" "$helper/python/stages.py" passed trace-1.json
holds "and nest" "$PYTHON" "$helper/python/nests.py" trace-0.json trace-1.json
