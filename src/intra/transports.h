// SPDX-License-Identifier: BSD-3-Clause
// The transports between the ranks of a node, in one table, in the order of comm::NodePath. Each
// guarantees what intra_node.h says. A call begins with the first row that is possible. At the
// first barrier of shm the ranks may agree on nccl (pass_decision.h); the call then goes on with
// that row.
#pragma once
#include "comm/call.h"

namespace slimpi::comm {
class Communicator;
}  // namespace slimpi::comm

namespace slimpi::intra {

struct NodeResult;

struct Transport {
  const char* name;  // as in SLIMPI_INTRA

  // Whether calls of the communicator can begin with it; the same on all ranks.
  bool (*possible)(comm::Communicator& communicator);

  // Reserves the scratch memory of the two functions below; null where they need none. Not
  // collective.
  Status (*reserve)(const comm::Call& call, const comm::InterNodeGroup& group);

  // As intra_reduce_scatter and intra_all_gather. The reduce-scatter sets call.node_path to another
  // row where the ranks agree on that; then it has added nothing.
  Status (*reduce_scatter)(comm::Call& call, const comm::InterNodeGroup& group);
  Status (*all_gather)(comm::Call& call, const comm::InterNodeGroup& group);
};

const Transport& transport(comm::NodePath path);

// The functions of the rows, in transport_NAME.cpp.

// shm: in blocks through message buffers in the segment, in host memory.
bool can_share_memory(comm::Communicator& communicator);
Status reserve_for_shm(const comm::Call& call, const comm::InterNodeGroup& group);
Status reduce_scatter_by_shm(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_shm(comm::Call& call, const comm::InterNodeGroup& group);

// mpi: by MPI messages, which work between any ranks.
Status reserve_for_mpi(const comm::Call& call, const comm::InterNodeGroup& group);
Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);

// nccl: by NCCL, GPU to GPU (nccl_group.h).
Status reduce_scatter_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// The whole allreduce of one node, added pairwise as MPICH adds. By shm; `word`: what this rank
// publishes about the call, in the fields of pass_decision.h. It sets call.node_path as the
// reduce-scatter does. And by nccl.
Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group, std::uint64_t word,
                        NodeResult* result);
Status allreduce_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// Floats of one block of a shard from each of `size` node-local ranks, by shm.
std::uint64_t shared_scratch_floats(std::size_t size, const comm::InterNodeGroup& group);

}  // namespace slimpi::intra
