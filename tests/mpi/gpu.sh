#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in the memory of a GPU give the bytes of host buffers. Skips where there is no GPU;
# tests/mpi/fake_driver.sh runs it there, on a fake driver for CUDA's driver.
. "$top_srcdir/tests/helper/mpi.sh"
[ -e "$top_builddir/.libs/slimpi-cuda.so" ] || skip "the part for GPU memory is not built"
export SLIMPI_MIN_SIZE=0

run() {
  ranks=$1 per_node=$2 hierarchy=$3 algorithm=$4 bits=$5 bucket=$6 feedback=$7
  what="$ranks ranks, $per_node a node, $hierarchy, $algorithm, $bits bits in $bucket, $feedback"
  status=0
  SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_HIERARCHY=$hierarchy SLIMPI_ALGORITHM=$algorithm \
    SLIMPI_BITS=$bits SLIMPI_BUCKET=$bucket SLIMPI_ERROR_FEEDBACK=$feedback under "$ranks" \
    "$top_builddir/tests/gpu/sums" || status=$?
  case $status in
  0) pass "$what" ;;
  77) skip "there is no GPU" ;;
  *) fail "$what: exit status $status" ;;
  esac
}

run 2 1 flat bytegrad 8 2048 0
run 3 1 flat bytegrad 3 512 1
run 4 2 leader bytegrad 4 0 0
deeper run 4 2 sharded bytegrad 8 4096 1
run 3 1 flat qsgd 8 2048 0
deeper run 2 1 flat fp16 8 2048 0
deeper run 3 2 sharded allreduce 8 2048 0

# On one node slimpi makes the sums with a buffer of a GPU on some rank, of 64 KiB and more.
if expensive; then least=2 most=4; else least=3 most=3; fi
for ranks in $(seq $least $most); do
  what="$ranks ranks of one node, shm"
  EXACT=1 SLIMPI_INTRA=shm SLIMPI_REPORT=exact.json \
    holds "$what" under $ranks "$top_builddir/tests/gpu/sums"
  made=$(report exact.json calls exact_in_node)
  expect $((made >= 60)) 1 "$what: slimpi made the sums of GPUs ($made)"
  made=$(report exact.json calls passed single_node)
  expect $((made >= 6)) 1 "$what: MPI made those of host buffers ($made)"
done
for one in nonblocking persistent; do
  by_way $one
  EXACT=1 SHORT=1 SLIMPI_REPORT=exact.json holds "one node, $one" \
    under 2 "$top_builddir/tests/gpu/sums"
  expect $(($(report exact.json calls exact_in_node) > 0)) 1 "one node, $one: by slimpi"
done
by_way "${TEST_WAY:-blocking}"

for intra in auto shm; do
  SLIMPI_RANKS_PER_NODE=2 SLIMPI_INTRA=$intra holds "two nodes of two, $intra" \
    under 4 "$top_builddir/tests/gpu/sums"
done

avoid_deadly_calls "$top_builddir/tests/gpu/passing"
for one in blocking nonblocking persistent; do
  by_way $one
  SLIMPI_MIN_SIZE=64K SLIMPI_RANKS_PER_NODE=1 holds "calls that are left to MPI, $one" \
    under 2 "$top_builddir/tests/gpu/passing"
done
by_way "${TEST_WAY:-blocking}"
SLIMPI_RANKS_PER_NODE=1 holds "the benchmark of whole calls" \
  under 2 "$top_builddir/tests/gpu/end_to_end" times.json 64K 1M
expect "$("$PYTHON" -c 'import json
print(json.load(open("times.json"))[1]["bytes"])')" 1048576 "and its results"

# Only the fake driver can be told to fail in these ways.
for fault in memory kernels lost stream copy; do
  [ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ] || continue
  LD_LIBRARY_PATH=$top_builddir/tests/fake_driver SLIMPI_RANKS_PER_NODE=1 \
    under 3 "$top_builddir/tests/gpu/faults" $fault && pass "fault: $fault" ||
    fail "fault: $fault: exit status $?"
done

what="nothing is taken after the first calls, and nothing is left behind"
export SLIMPI_RANKS_PER_NODE=1
holds "$what" under 2 "$top_builddir/tests/gpu/calls" "${CALLS:-10000}"
holds "$what: ten thousand short ones" under 2 "$top_builddir/tests/gpu/calls" 10000 256
deeper holds "$what: few calls, four ranks" under 4 "$top_builddir/tests/gpu/calls" 60

export SLIMPI_START=0 SLIMPI_POWERSGD_RANK=4
lowrank() { # WHAT ALGORITHM SHAPES COLUMNS COUNT
  SLIMPI_ALGORITHM=$2 SLIMPI_POWERSGD_SHAPES=$3 \
    under 3 "$top_builddir/tests/gpu/lowrank" "$4" "$5" &&
    pass "$1" || fail "$1: exit status $?"
}
lowrank "powersgd by cuBLAS" powersgd 4000=80x50 50 4000
deeper lowrank "batched_powersgd, the last row cut short" batched_powersgd 4000=80x50 60 3583
SLIMPI_ERROR_FEEDBACK=0 deeper lowrank "powersgd without feedback" powersgd 4000=80x50 50 4000
# Where there is no cuBLAS, the CPU multiplies.
if [ -e "$top_builddir/tests/fake_driver/libcuda.so.1" ]; then
  mkdir driver_only
  cp -L "$top_builddir/tests/fake_driver/libcuda.so.1" driver_only/
  LD_LIBRARY_PATH=$work/driver_only lowrank "powersgd without cuBLAS" powersgd 4000=80x50 50 4000
fi
