// SPDX-License-Identifier: BSD-3-Clause
// The transports between the ranks of a node, in one table, in the order of comm::NodePath. Each
// guarantees what intra_node.h says. A call begins with the first row that is possible. At the
// first barrier of shm the ranks may agree on nccl (PassDecision); the call then goes on with
// that row.
#pragma once
#include <cstdint>

#include "comm/call.h"
#include "intra/nccl_group.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

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

// The whole allreduce of one node, added in pairs of neighbors. That by shm sets call.node_path as
// the reduce-scatter does.
Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group);
Status allreduce_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// Bytes of one block of a shard from each of `size` node-local ranks, by shm.
std::size_t shared_scratch_bytes(std::size_t size, const comm::InterNodeGroup& group);

// The word that a rank of a node publishes about a call, by its fields, and the decision that the
// ranks make from the words after the next barrier. All ranks see the same words, so all decide the
// same.
namespace published {

constexpr std::uint64_t kReadiness = 0x3;  // NcclGroup::Readiness

// A hash of the call's sum (ActiveCall::sum_word): a difference is an error of the program.
constexpr int kSumShift = 32, kSumBits = 32;
constexpr std::uint64_t kSum = std::uint64_t(0xffffffff) << kSumShift;

}  // namespace published

struct PassDecision {
  bool nccl;   // the call is done by nccl
  bool open;   // nccl is to be opened first: all ranks could, and none is open
  bool again;  // some rank did not fill the message buffers before the barrier
};

inline PassDecision decide(const NodeBarrier::Published& words) {
  if (!words.alike(published::kReadiness)) return {false, false, true};
  const std::uint64_t all = words.all & published::kReadiness;
  return {all == NcclGroup::ready, all == NcclGroup::not_open, false};
}

}  // namespace slimpi::intra
