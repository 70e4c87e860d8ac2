// SPDX-License-Identifier: BSD-3-Clause
// The ways in which the ranks of a node exchange; intra_reduce_scatter.cpp chooses. Each offers
// what intra_reduce_scatter.h guarantees.
#pragma once
#include "comm/call.h"
#include "intra/device_path.h"

namespace slimpi::intra {

struct NodeResult;

// By messages of MPI, which works between any ranks.
Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);
std::size_t node_message_bytes(const comm::NodeLayout& layout, const comm::InterNodeGroup& group);

// Through memory that the node's ranks share, with the caller's lease of it. Needs
// Communicator::shared(). Where this call's buffers are to go over links, or some rank has no lease
// and all have to send messages, which the ranks find out here, *way is all that is done. The share
// gets in *way how the sum went.
Status reduce_scatter_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                             const SegmentLease& lease, DevicePath::Path* way);
Status all_gather_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                         const SegmentLease& lease, DevicePath::Path* way);

// The whole allreduce of one node, added pairwise as MPICH adds. `word`: what this rank publishes
// of the call, in the fields of published.h. Without the lease on some rank it is left to MPI.
Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group,
                        const SegmentLease& lease, std::uint64_t word, DevicePath::Path* way,
                        NodeResult* result);

// The same over links between the node's GPUs, once those above said so, with the same lease.
Status reduce_scatter_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);
Status allreduce_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// Bytes for one piece of a slice from each of `size` node-local ranks.
std::size_t shared_scratch_bytes(std::size_t size, const comm::InterNodeGroup& group);

}  // namespace slimpi::intra
