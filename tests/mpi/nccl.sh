#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Inside a node whose ranks have a GPU each, NCCL carries what they sum: on a fake NCCL and the fake
# driver. The bytes are those of host buffers. Where NCCL cannot be used the ranks go another way.
. "$top_srcdir/tests/helper/mpi.sh"
fake_driver=$top_builddir/tests/fake_driver
[ -e "$fake_driver/libnccl.so.2" ] || skip "the fake driver is not built"
grep -q 'define WITH_NCCL 1' "$top_builddir/config.h" || skip "built without NCCL"
export LD_LIBRARY_PATH="$fake_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export FAKE_GPUS=own SLIMPI_MIN_SIZE=0 SLIMPI_LOG=info
linked='exchange device buffers by NCCL' hosted='device buffers pass through host memory'

# run WHAT RANKS PER-NODE HIERARCHY MODE COUNT... : tests/gpu/nccl, its output in out.txt
run() {
  what=$1 ranks=$2 per_node=$3 hierarchy=$4
  shift 4
  status=0
  SLIMPI_RANKS_PER_NODE=$per_node SLIMPI_HIERARCHY=$hierarchy \
    under "$ranks" "$top_builddir/tests/gpu/nccl" "$@" >out.txt 2>&1 || status=$?
  expect "$status" "${wanted:-0}" "$what"
  [ "$status" = "${wanted:-0}" ] || cat out.txt
}
said() { # TIMES LINE WHAT
  expect "$(grep -c "$2" out.txt)" "$1" "$3"
}

# Inside one node, MPI makes some calls in turn with NCCL.
run "one node of two" 2 0 sharded any 20003 65536
said 2 "$linked" "it is said once a rank"
SLIMPI_INTRA=nccl run "one node of three" 3 0 sharded any 20003
said 3 "$linked" "they are linked"
if expensive; then
  SLIMPI_INTRA=nccl run "one node of four" 4 0 sharded any 16385 16387
  said 4 "$linked" "they are linked"
fi
run "leaders" 4 2 leader linked 1 1000 20003
run "a leader alone, and one with two ranks" 3 2 leader any 20003
said 2 "$linked" "the two are linked"
run "all ranks for a slice each" 4 2 sharded linked 1 63 20003
run "nodes of two and of one" 3 2 sharded any 20003
said 2 "$linked" "the two are linked"
SLIMPI_ALGORITHM=allreduce run "more than one block at a time" 4 2 leader linked 2200000
SLIMPI_INTRA=nccl run "blocks of 4 MiB for each other rank" 3 0 sharded block 1048576

# The whole list of kinds of memory; what lies elsewhere goes another way on all ranks.
SLIMPI_RANKS_PER_NODE=2 holds "memory of every kind" under 4 "$top_builddir/tests/gpu/sums"
SLIMPI_RANKS_PER_NODE=2 holds "nothing is taken later, nothing is left behind" \
  under 4 "$top_builddir/tests/gpu/calls" 60

# Ranks that NCCL cannot link: they share a GPU, or a rank cannot join.
FAKE_GPUS=shared run "ranks that share a GPU" 2 0 sharded unlinked 20003
said 2 "two ranks use the GPU 0000:3B:00.0" "it is said why"
said 2 "$hosted" "their buffers pass through the host's"
export SLIMPI_LOG=debug
FAKE_GPUS=shared run "ranks that share a GPU, with more output" 2 0 sharded unlinked 20003
said 0 "NCCL .* is loaded" "NCCL, which is large, is not loaded for them"
run "ranks with a GPU each, with more output" 2 0 sharded any 20003
said 2 "NCCL .* is loaded" "and is loaded for these"
export SLIMPI_LOG=info
run "a rank that cannot join" 2 0 sharded join 20003
said 2 "$hosted" "its node goes another way"
run "a rank that cannot join, and another node" 4 2 leader join 20003
said 2 "$linked" "the other node is linked"
run "a rank that cannot join, as it hears later" 2 0 sharded state 20003
said 2 "$hosted" "its node goes another way"
SLIMPI_INTRA=shm run "SLIMPI_INTRA=shm" 2 0 sharded unlinked 20003
mkdir without
cp -L "$fake_driver/libcuda.so.1" without/
: >without/libnccl.so.2
LD_LIBRARY_PATH=$work/without run "no NCCL" 2 0 sharded unlinked 20003
said 2 "$hosted" "their buffers pass through the host's"
# An old NCCL lacks a function: on all ranks, or on one.
need sed
mkdir old
ln -s "$(readlink -f "$fake_driver/libcuda.so.1")" old/libcuda.so.1
sed 's/ncclCommFinalize/_cclCommFinalize/g' "$fake_driver/libnccl.so.2" >old/libnccl.so.2
too_old='libnccl.so.2 is too old, it has no ncclCommFinalize'
LD_LIBRARY_PATH=$work/old run "an NCCL without a function" 2 0 sharded unlinked 20003
said 2 "NCCL is not used inside the node: $too_old" "it is said why"
said 2 "$hosted" "their buffers pass through the host's"
on_second() { # WHAT LIBRARIES MODE
  what=$1 status=0
  SLIMPI_RANKS_PER_NODE=0 under 2 "$top_srcdir/tests/helper/on_rank.sh" 1 "LD_LIBRARY_PATH=$2" \
    "$top_builddir/tests/gpu/nccl" "$3" 20003 >out.txt 2>&1 || status=$?
}
for libraries in old without; do
  on_second "NCCL on one rank alone: $libraries" "$work/$libraries" unlinked
  expect "$status" 0 "$what"
  said 2 "$hosted" "buffers of both pass through the host's"
  said 2 'NCCL is not used inside the node: .*libnccl.so.2' "both say why"
done

# If SLIMPI_INTRA names nccl and NCCL cannot be used, the job ends with a line.
export SLIMPI_INTRA=nccl
refused='SLIMPI_INTRA=nccl cannot be used here'
unable() { # WHAT TEXT
  status=0
  SLIMPI_RANKS_PER_NODE=0 under 2 "$top_builddir/tests/gpu/nccl" unlinked 20003 \
    >out.txt 2>&1 || status=$?
  holds "$1: the job ends" test "$status" != 0 -a "$status" != 124
  holds "$1: it is said why" grep -q "$refused: .*$2.*; accepted: auto, shm, mpi" out.txt
}
FAKE_GPUS=shared unable "SLIMPI_INTRA=nccl, a GPU for two" "two ranks use the GPU"
LD_LIBRARY_PATH=$work/without unable "SLIMPI_INTRA=nccl without NCCL" "libnccl.so.2"
LD_LIBRARY_PATH=$work/old unable "SLIMPI_INTRA=nccl with an old NCCL" "$too_old"
on_second "SLIMPI_INTRA=nccl, and an old NCCL on one rank" "$work/old" unlinked
holds "$what: the job ends" test "$status" != 0 -a "$status" != 124
holds "$what: it is said why" grep -q "$refused: .*$too_old" out.txt
unset SLIMPI_INTRA

# NCCL fails on one rank: all ranks get an error, and no rank waits for another.
for fault in send later; do
  SLIMPI_INTRA=nccl run "NCCL fails: $fault" 3 0 sharded $fault 20003
  # The node without a failure waits until its wait ends.
  if [ $fault = send ] || expensive; then
    run "NCCL fails between nodes: $fault" 4 2 leader $fault 20003
  fi
done
