// SPDX-License-Identifier: BSD-3-Clause
// The exact work inside a node, around any exchange between nodes: before it, each rank that owns a
// slice gets its node-local ranks' sum of it; after it, every node-local rank gets the finished
// slices.
#pragma once
#include <vector>

#include "comm/call.h"

namespace slimpi::intra {

// Slice of `count` elements that local rank `inter-node group` owns; whole buckets.
comm::Range shard_range(std::uint64_t count, const kernels::Format& format,
                        const comm::InterNodeGroup& group, int shard_index);

// Bytes of scratch that intra_reduce_scatter and intra_all_gather need in device and staging
// memory.
std::size_t node_bytes(const comm::Communicator& communicator, const comm::InterNodeGroup& group);

// Floats of Communicator::partial that sums inside a node need.
std::uint64_t node_partial(const comm::Communicator& communicator);

// out's own slice = the node-local ranks' in, added in rank order in fp32. Sends the other slices.
Status intra_reduce_scatter(comm::Call& call, const comm::InterNodeGroup& group);

// Every node-local rank's out = the slices of their owners.
Status intra_all_gather(comm::Call& call, const comm::InterNodeGroup& group);

// What became of a intra_allreduce; alike on all ranks.
struct NodeResult {
  bool unverified = false;            // some rank has to compare first; nothing was written
  bool left_to_mpi = false;           // only MPI can give MPI's bytes
  std::vector<comm::Range> finished;  // what out holds of the sum all the same
};

// The whole allreduce of a communicator on one node, with the bytes that MPI itself would give in
// the caller's floating-point environment: NaNs included, or left to MPI. `verified`: slimpi's
// order of additions is MPI's, as this rank knows. Left to MPI, too, where another thread's call
// has the shared memory of some rank. Needs Communicator::shared().
Status intra_allreduce(comm::Call& call, bool verified, NodeResult* result);

// Makes room for intra_allreduce near `like`.
Status reserve_intra_allreduce(comm::Communicator& communicator, const device::Device& device,
                               const void* like);

}  // namespace slimpi::intra
