#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Buffers in memory that neither the program nor MPI can touch give the bytes of host buffers, by
# every algorithm and every way between the ranks of a node.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
low=low_precision_decentralized
gathers="COLLECTIVE=Allgatherv calls=allreduce,reduce_scatter,allgather"

rows <<END
+ two nodes                  | 2   | hierarchy=flat                             | protected
3 bits, feedback, selftest   | 3   | hierarchy=flat bits=3 error_feedback=1 selftest=1 | protected
+ qsgd                       | 3   | hierarchy=flat algorithm=qsgd              | protected
+ fp16                       | 2   | hierarchy=flat algorithm=fp16              | protected
an error bound               | 3   | hierarchy=flat max_error=0.01              | protected
decentralized                | 3   | hierarchy=flat algorithm=decentralized     | protected
low precision                | 3   | hierarchy=flat algorithm=$low bits=5       | protected
nodes of two, peers change   | 4/2 | hierarchy=sharded algorithm=decentralized peers=shift_one \
    interval=2 | protected
nodes of two, low precision  | 4/2 | hierarchy=sharded algorithm=$low peers=all bucket=0 | protected
powersgd                     | 2   | hierarchy=flat algorithm=powersgd start=0  | protected
+ batched_powersgd           | 4/2 | hierarchy=leader algorithm=batched_powersgd start=1 \
    powersgd_rank=3 | protected
# Reduce-scatters and all-gathers, some of whose blocks are empty.
reduce-scatter               | 3   | COLLECTIVE=Reduce_scatter hierarchy=flat bits=3 \
    error_feedback=1 | protected
reduce-scatter, shm          | 4/2 | COLLECTIVE=Reduce_scatter hierarchy=sharded intra=shm \
    selftest=2 | protected
reduce-scatter, messages     | 3/2 | COLLECTIVE=Reduce_scatter hierarchy=leader algorithm=packed \
    intra=mpi | protected
+ reduce-scatter, fp16       | 4/3 | COLLECTIVE=Reduce_scatter hierarchy=sharded algorithm=fp16 \
  | protected
+ reduce-scatter, one bucket | 2   | COLLECTIVE=Reduce_scatter hierarchy=flat bucket=0 | protected
all-gather                   | 3   | $gathers hierarchy=flat bits=3 error_feedback=1 selftest=1 \
  | protected
all-gather, shm              | 4/2 | $gathers hierarchy=sharded algorithm=packed intra=shm \
  | protected
all-gather, messages         | 3/2 | $gathers hierarchy=leader intra=mpi        | protected
+ all-gather, fp16           | 4/3 | $gathers hierarchy=sharded algorithm=fp16  | protected
+ all-gather, qsgd           | 2   | $gathers hierarchy=flat algorithm=qsgd     | protected
# Inside a node, buffers pass through host memory or go by messages.
leaders, why not NCCL        | 4/2 | hierarchy=leader bits=4 log=info           | protected \
  | err 1+ NCCL is not used inside the node
shm, feedback                | 4/2 | hierarchy=sharded error_feedback=1 intra=shm | protected
messages                     | 4/2 | hierarchy=sharded intra=mpi                | protected
an error bound in nodes      | 4/2 | hierarchy=sharded max_error=0.01 bucket=64 | protected
+ allreduce                  | 3/2 | hierarchy=sharded algorithm=allreduce      | protected
+ leaders, low precision     | 3/2 | hierarchy=leader algorithm=$low            | protected
one node                     | 3/0 | hierarchy=sharded                          | protected
# Buffers move between the calls of one communicator.
buffers move everywhere      | 4/2 |                                            | protected changing
buffers move between nodes   | 3   |                                            | protected changing
buffers move in a node       | 3/0 |                                            | protected changing
# SLIMPI_BUFFERS speaks of memory that the ranks have differently: they ask each other.
mixed buffers, any           | 3   | buffers=any | protected mixed | compressed=4; off=0
mixed buffers, device        | 3   | buffers=device | protected mixed | compressed=2; off=2
mixed buffers, host          | 3   | buffers=host | protected mixed | compressed=2; off=2
END

# Hooks work in host memory, whether they are a codec or a whole schedule.
if command -v "${MPICC:-mpicc}" >/dev/null 2>&1; then
  hook topk topk
  hook sign sign
  rows <<END
the hook topk      | 3   | hierarchy=flat algorithm=hook:$work/topk.so | protected
the hook sign      | 3   | hierarchy=flat algorithm=hook:$work/sign.so | protected
topk with feedback | 4/2 | hierarchy=sharded algorithm=hook:$work/topk.so error_feedback=1 \
  | protected
END
fi

# The rank whose GPU is nearest to a NIC leads; the sum is the same.
if [ -e "$top_builddir/.libs/slimpi-hwloc.so" ]; then
  export HWLOC_COMPONENTS=xml HWLOC_XMLFILE="$top_srcdir/tests/topology/four_gpus.xml"
  leads='leads its node: its GPU is nearest to a NIC'
  rows <<END
leaders near a NIC | 4/2 | hierarchy=leader log=info \
  | protected open 0000:81:00.0 0000:03:00.0 0000:08:00.0 0000:81:00.0 | err 1 slimpi.1.: $leads \
    (same PCI switch); err 1 slimpi.2.: $leads (same PCI root); err 0 slimpi.3.: $leads
END
fi
