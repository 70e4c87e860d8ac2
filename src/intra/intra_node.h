// SPDX-License-Identifier: BSD-3-Clause
// The exact work inside a node, before and after any exchange between nodes. Where all ranks share
// one node, MPI makes the sums, but for those of a GPU's buffers. Before it, each rank
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
//      shard adds in rank order, on one node in pairs of neighbors (ordered_sum.h).
//   5. A failure of one rank becomes one of all (comm::Exchange::settle). The communicator makes no
//      sum any more then.
#pragma once
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

// The whole allreduce of a communicator on one node, for buffers of a GPU: added in pairs of
// neighbors, as MPICH adds. Needs shared_of(), and the memory of reserve_intra_allreduce().
Status intra_allreduce(comm::Call& call);

// Reserves the scratch memory of intra_allreduce. Not collective.
Status reserve_intra_allreduce(const comm::Call& call);

}  // namespace slimpi::intra
