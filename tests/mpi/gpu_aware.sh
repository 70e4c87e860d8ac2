#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Where MPI says that it takes device memory, messages between nodes go out of it and into it, and
# what is left to MPI goes there as it is; the bytes are those of host memory, whichever ranks have
# a GPU-aware MPI.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info SLIMPI_RANKS_PER_NODE=1
export SLIMPI_BUCKET=2048 # kernels write messages of shorter buckets where MPI takes them
said='MPI takes device memory'
program=$top_builddir/tests/mpi/protected

# run RANKS ALGORITHM [OPTION=VALUE...]
run() {
  run="$*" ranks=$1 algorithm=$2
  shift 2
  shows "$run" under "$ranks" env SLIMPI_ALGORITHM="$algorithm" "$@" "$program"
}
message_bytes() { sed -n 's/^message bytes //p' out.txt; }

run 2 bytegrad
staged=$(message_bytes)
expect "$(grep -c "$said" err.txt)" 0 "MPI alone takes no device memory"

preload=$preload:$top_builddir/tests/helper/.libs/libaware_mpi.so
run 2 bytegrad
expect "$(grep -c "$said" err.txt)" 2 "MPI says that it takes it"
headers=$(message_bytes)
expect "$((headers % 48))" 0 "nothing but headers passes through the host: $headers bytes"
holds "which is little of $staged" test "$headers" -gt 0 -a "$((headers * 50))" -lt "$staged"

# One of three ranks has a GPU-aware MPI. In some sums, buffers of the other ranks lie in host
# memory.
run 3 bytegrad AWARE_RANK=0 SLIMPI_BITS=3 SLIMPI_ERROR_FEEDBACK=1
run 3 low_precision_decentralized AWARE_RANK=1
run 4 allreduce SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=sharded
run 2 fp16

# The ranks still check the headers: of messages to the owner, and of messages from it. The third
# message of each kind is the first one of device memory.
preload=$preload:$top_builddir/tests/mpi/.libs/libfaults.so
for fault in damaged:1:3 damaged:0:3 short:1:3 short:0:3; do
  TEST_FAULT=$fault under 2 "$program" >out.txt 2>err.txt && fail "$fault goes unseen"
  case $fault in damaged*) seen='its header is damaged' ;; *) seen='bytes of payload came' ;; esac
  holds "$fault: $seen" grep -q "$seen" err.txt
done
preload=${preload%:*}

avoid_deadly_calls "$top_builddir/tests/mpi/bypass_device"
SLIMPI_MIN_SIZE=64K SLIMPI_REPORT=$work/report.json holds "calls that are left to MPI" \
  under 2 "$top_builddir/tests/mpi/bypass_device" once
expect "$(report report.json buffers staged)" 0 "nothing of them is staged"

# The same holds with the GPU's own kernels and streams.
if [ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ]; then
  export LD_LIBRARY_PATH="$top_builddir/tests/fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  program=$top_builddir/tests/gpu/sums
  run 3 bytegrad AWARE_RANK=2
  expect "$(grep -c "$said" err.txt)" 1 "one of three MPIs takes a GPU's memory"
fi
