// SPDX-License-Identifier: BSD-3-Clause
// The exact work inside a node, around any exchange between nodes: before it, each rank that owns a
// slice gets its neighbours' sum of it; after it, every neighbour gets the finished slices.
#pragma once
#include <vector>

#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// Slice of `count` elements that local rank `rail` owns; whole buckets.
Range slice_of(std::uint64_t count, const kernels::Format& format, const Rails& rails, int rail);

// Bytes of scratch that node_sum and node_share need in device and staging memory.
std::size_t node_bytes(const Communicator& communicator, const Rails& rails);

// Floats of Communicator::partial that sums inside a node need.
std::uint64_t node_partial(const Communicator& communicator);

// out's own slice = the neighbours' in, added in rank order in fp32. Sends the other slices.
Status node_sum(Call& call, const Rails& rails);

// Every neighbour's out = the slices of their owners.
Status node_share(Call& call, const Rails& rails);

// What became of a node_allreduce; alike on all ranks.
struct NodeResult {
  bool unverified = false;      // some rank has to compare first; nothing was written
  bool left_to_mpi = false;     // only MPI can give MPI's bytes
  std::vector<Range> finished;  // what out holds of the sum all the same
};

// The whole allreduce of a communicator on one node, with the bytes that MPI itself would give in
// the caller's floating-point environment: NaNs included, or left to MPI. `verified`: slimpi's
// order of additions is MPI's, as this rank knows. Left to MPI, too, where another thread's call
// has the shared memory of some rank. Needs Communicator::shared().
Status node_allreduce(Call& call, bool verified, NodeResult* result);

// Makes room for node_allreduce near `like`.
Status reserve_node_allreduce(Communicator& communicator, const device::Device& device,
                              const void* like);

}  // namespace slimpi::algorithm
