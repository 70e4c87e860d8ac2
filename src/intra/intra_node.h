// SPDX-License-Identifier: BSD-3-Clause
// The uncompressed sums inside a node (the ranks that share memory), before and after the exchange
// between nodes. A shard is the part of the vector that one rank of a node owns. Before the
// exchange, the owner gets the sum of its node-local ranks' values of the shard. Afterwards, every
// node-local rank gets the finished shards. If all ranks share one node, MPI runs the sums, except
// those of GPU buffers.
//
// The steps, in order:
// 1. The ranks of a node open a shared-memory segment for their communicator
//      (shared_memory.cpp). If that fails on some node, all ranks send MPI messages instead.
// 2. Before the first barrier of a call (node_barrier.h), each rank publishes one 64-bit word:
//      whether its buffers allow NCCL, and a hash of its sum (transports.h).
// 3. From these words all ranks decide in the same way whether they exchange through the segment
//      (shm) or by NCCL (nccl). transports.h has the table.
// 4. The vector passes in blocks, each of which has a piece of each shard (node_pass.h). The
//      owner of a shard adds in rank order or, on one node, in pairs of neighbors
//      (ordered_sum.h).
// 5. A failure of one rank becomes a failure of all ranks (comm::Exchange::settle), after which
//      the communicator makes no more sums.
#pragma once
#include "comm/call.h"

namespace slimpi::intra {

// Returns call.shards[shard_index], or shard_range() if call.shards is empty.
comm::Range shard_of_call(const comm::Call& call, const comm::InterNodeGroup& group,
                          int shard_index);

// Returns the range of shard `shard_index` if `count` elements are divided equally into
// `group.shards` shards of whole buckets (the values that share a scale).
comm::Range shard_range(std::uint64_t count, const kernels::Format& format,
                        const comm::InterNodeGroup& group, int shard_index);

// Reserves the scratch memory of intra_reduce_scatter() and intra_all_gather(). Does not
// communicate.
Status reserve_node_sum(const comm::Call& call, const comm::InterNodeGroup& group);

// Sends this rank's values of the other shards to their owners. Adds the node-local ranks' values
// of this rank's own shard, in rank order in float32, and writes the sum to call.out.
Status intra_reduce_scatter(comm::Call& call, const comm::InterNodeGroup& group);

// Sends each owner's finished shard to every node-local rank, which receives it in call.out.
Status intra_all_gather(comm::Call& call, const comm::InterNodeGroup& group);

// Runs the whole allreduce of GPU buffers on a communicator whose ranks all share one node. Adds in
// pairs of neighbors, like MPICH. The caller has opened the segment of shared_of() and called
// reserve_intra_allreduce().
Status intra_allreduce(comm::Call& call);

// Reserves the scratch memory of intra_allreduce(). Does not communicate.
Status reserve_intra_allreduce(const comm::Call& call);

}  // namespace slimpi::intra
