#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in memory that neither the program nor MPI can touch give the bytes of host buffers, by
# every algorithm and every way between the ranks of a node.
. "$top_srcdir/tests/helper/mpi.sh"
export SLIMPI_MIN_SIZE=0
program=$top_builddir/tests/mpi/protected

# run RANKS PER-NODE HIERARCHY ALGORITHM [OPTION=VALUE...]
run() {
  run="$*" ranks=$1 per_node=$2 hierarchy=$3 algorithm=$4
  shift 4
  shows "$run" under "$ranks" env SLIMPI_RANKS_PER_NODE="$per_node" \
    SLIMPI_HIERARCHY="$hierarchy" SLIMPI_ALGORITHM="$algorithm" "$@" "$program"
}

deeper run 2 1 flat bytegrad
run 3 1 flat bytegrad SLIMPI_BITS=3 SLIMPI_ERROR_FEEDBACK=1 SLIMPI_SELFTEST=1
deeper run 3 1 flat qsgd
deeper run 2 1 flat fp16
run 3 1 flat bytegrad SLIMPI_MAX_ERROR=0.01
run 3 1 flat decentralized
run 3 1 flat low_precision_decentralized SLIMPI_BITS=5
run 4 2 sharded decentralized SLIMPI_PEERS=shift_one SLIMPI_INTERVAL=2
run 4 2 sharded low_precision_decentralized SLIMPI_PEERS=all SLIMPI_BUCKET=0
run 2 1 flat powersgd SLIMPI_START=0
deeper run 4 2 leader batched_powersgd SLIMPI_START=1 SLIMPI_POWERSGD_RANK=3

# Reduce-scatters, some of whose blocks are empty.
export COLLECTIVE=Reduce_scatter
run 3 1 flat bytegrad SLIMPI_BITS=3 SLIMPI_ERROR_FEEDBACK=1
run 4 2 sharded bytegrad SLIMPI_INTRA=shm SLIMPI_SELFTEST=2
run 3 2 leader packed SLIMPI_INTRA=mpi
deeper run 4 3 sharded fp16
deeper run 2 1 flat bytegrad SLIMPI_BUCKET=0
# All-gathers, some of whose blocks are empty.
export COLLECTIVE=Allgatherv SLIMPI_CALLS=allreduce,reduce_scatter,allgather
run 3 1 flat bytegrad SLIMPI_BITS=3 SLIMPI_ERROR_FEEDBACK=1 SLIMPI_SELFTEST=1
run 4 2 sharded packed SLIMPI_INTRA=shm
run 3 2 leader bytegrad SLIMPI_INTRA=mpi
deeper run 4 3 sharded fp16
deeper run 2 1 flat qsgd
unset COLLECTIVE SLIMPI_CALLS

# Inside a node, buffers pass through host memory or go by messages.
run 4 2 leader bytegrad SLIMPI_BITS=4 SLIMPI_LOG=info
holds "it is said why NCCL is not used" grep -q 'NCCL is not used inside the node' err.txt
run 4 2 sharded bytegrad SLIMPI_ERROR_FEEDBACK=1 SLIMPI_INTRA=shm
run 4 2 sharded bytegrad SLIMPI_INTRA=mpi
run 4 2 sharded bytegrad SLIMPI_MAX_ERROR=0.01 SLIMPI_BUCKET=64
deeper run 3 2 sharded allreduce
deeper run 3 2 leader low_precision_decentralized
run 3 0 sharded bytegrad

# Buffers move between the calls of one communicator.
program="$program changing"
changing() { # shellcheck disable=SC2086
  SLIMPI_RANKS_PER_NODE=$2 under "$1" $program
}
holds "buffers that move, in a node and between nodes" changing 4 2
holds "buffers that move, between nodes" changing 3 1
holds "buffers that move, in a node" changing 3 0
program=${program% changing}

# The rank whose GPU is nearest to a NIC leads; the sum is the same.
program="$program open 0000:81:00.0 0000:03:00.0 0000:08:00.0 0000:81:00.0"
near() { # shellcheck disable=SC2086
  HWLOC_COMPONENTS=xml HWLOC_XMLFILE=$top_srcdir/tests/topology/four_gpus.xml SLIMPI_LOG=info \
    SLIMPI_RANKS_PER_NODE=2 SLIMPI_HIERARCHY=leader under 4 $program >out.txt 2>err.txt
}
if [ -e "$top_builddir/.libs/slimpi-hwloc.so" ]; then
  holds "leaders near a NIC" near
  leads='leads its node: its GPU is nearest to a NIC'
  holds "on the first node" grep -q "slimpi\[1\]: $leads (same PCI switch)" err.txt
  holds "on the second node" grep -q "slimpi\[2\]: $leads (same PCI root)" err.txt
  holds "and nobody else there" test "$(grep -c "slimpi\[3\]: $leads" err.txt)" = 0
fi
program=${program%% *}

# Hooks work in host memory, whether they are a codec or a whole schedule.
if command -v "${MPICC:-mpicc}" >/dev/null 2>&1; then
  for name in topk sign; do
    hook $name $name
    run 3 1 flat "hook:$work/$name.so"
  done
  run 4 2 sharded "hook:$work/topk.so" SLIMPI_ERROR_FEEDBACK=1
fi

# SLIMPI_BUFFERS speaks of memory that the ranks have differently: they ask each other.
export SLIMPI_RANKS_PER_NODE=1 SLIMPI_REPORT=$work/report.json
mixed() { # BUFFERS COMPRESSED OFF
  SLIMPI_BUFFERS=$1 holds "mixed buffers, SLIMPI_BUFFERS=$1" under 3 "$program" mixed
  expect "$(report report.json calls compressed)" "$2" "SLIMPI_BUFFERS=$1: compressed"
  expect "$(report report.json calls passed off)" "$3" "SLIMPI_BUFFERS=$1: passed"
}
mixed any 4 0
mixed device 2 2
mixed host 2 2
