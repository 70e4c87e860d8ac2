// SPDX-License-Identifier: BSD-3-Clause
// The transports between the ranks of a node. Each guarantees what intra_node.h says. By value of
// SLIMPI_INTRA:
//
//   mpi    transport_mpi.cpp    messages
//   shm    transport_shm.h      message buffers in the segment, in host memory
//   nccl   transport_nccl.cpp   NCCL, GPU to GPU (nccl_group.h)
//
// auto: NodeState::open_shared decides on mpi, device_transport.h on nccl; else shm.
#pragma once
#include "comm/call.h"
#include "intra/device_transport.h"

namespace slimpi::intra {

struct NodeResult;

// mpi: by MPI messages, which work between any ranks. A message has at most this many floats.
constexpr std::uint64_t kMessageFloats = 64 << 10;
Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);
// Reserves the message buffers of both.
Status reserve_node_messages(const comm::Call& call, const comm::InterNodeGroup& group);

// shm: in blocks through memory that the node's ranks share. Needs shared_of(). The ranks
// decide together at the first barrier, and set call.node_path, by which the all-gather goes, too.
// If the buffers allow nccl, nothing else is done.
Status reduce_scatter_in_blocks(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_in_blocks(comm::Call& call, const comm::InterNodeGroup& group);

// The whole allreduce of one node, added pairwise as MPICH adds. `word`: what this rank publishes
// about the call, in the fields of pass_decision.h.
Status allreduce_in_blocks(comm::Call& call, const comm::InterNodeGroup& group, std::uint64_t word,
                           NodeResult* result);

// nccl: the same by NCCL, GPU to GPU, if the functions above set call.node_path to it.
Status reduce_scatter_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);
Status allreduce_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// Floats of one block of a shard from each of `size` node-local ranks.
std::uint64_t shared_scratch_floats(std::size_t size, const comm::InterNodeGroup& group);

}  // namespace slimpi::intra
