// SPDX-License-Identifier: BSD-3-Clause
// The exact work inside a node, before and after any exchange between nodes. Before it, each rank
// that owns a shard gets the sum of its node-local ranks' values of that shard. After it, every
// node-local rank gets the finished shards.
//
// The whole, in order:
//   1. The ranks of a node open a shared-memory segment for their communicator
//      (shared_memory.cpp). Where that fails on some node, all ranks send messages (mpi).
//   2. Before the first barrier of a call (node_barrier.h) each rank publishes one word: what its
//      buffers allow (transports.h).
//   3. From the words all ranks make the same decision: through the segment (shm) or by NCCL.
//      transports.h has the table.
//   4. The vector passes in blocks, a piece of each shard in one (node_pass.h). The owner of a
//      shard adds in rank order (ordered_sum.h); on one node as MPI does (mpi_order_probe.cpp).
//   5. A failure of one rank becomes one of all (comm::Exchange::settle). The communicator makes no
//      sum any more then.
#pragma once
#include <vector>

#include "comm/call.h"

namespace slimpi::intra {

// The elements of a shard of the call.
comm::Range shard_of(const comm::Call& call, const comm::InterNodeGroup& group, int shard_index);

// The elements of shard `shard_index` in a vector of `count` that is divided equally; whole
// buckets.
comm::Range shard_range(std::uint64_t count, const kernels::Format& format,
                        const comm::InterNodeGroup& group, int shard_index);

// Reserves the scratch memory of intra_reduce_scatter and intra_all_gather. Not collective.
Status reserve_node_sum(const comm::Call& call, const comm::InterNodeGroup& group);

// out's own shard = the node-local ranks' in, added in rank order in fp32. Sends the other shards
// to their owners.
Status intra_reduce_scatter(comm::Call& call, const comm::InterNodeGroup& group);

// Every node-local rank's out = the shards of their owners.
Status intra_all_gather(comm::Call& call, const comm::InterNodeGroup& group);

// The result of an intra_allreduce; the same on all ranks.
struct NodeResult {
  bool unverified = false;            // some rank must compare with MPI first; nothing was written
  bool unchecked = false;             // some rank must check its values first; nothing was written
  bool left_to_mpi = false;           // MPI must make the rest: only it can give MPI's bytes
  std::vector<comm::Range> finished;  // the ranges of out that hold the sum even so
};

// The whole allreduce of a communicator on one node, with the bytes that MPI itself would give in
// the caller's floating-point environment. A sum of NaNs has MPI's bytes too, or is left to MPI.
// `verified`: this rank knows that slimpi's order of additions is MPI's. Needs shared_of().
Status intra_allreduce(comm::Call& call, bool verified, NodeResult* result);

// Reserves the scratch memory of intra_allreduce. Not collective.
Status reserve_intra_allreduce(const comm::Call& call);

}  // namespace slimpi::intra
