// SPDX-License-Identifier: BSD-3-Clause
// The table of transports, the ways in which ranks of a node exchange, in the order of
// comm::NodePath. All yield the results that intra_node.h describes. A call begins with the first
// row that is possible. At the first barrier of the row shm the ranks may agree on NCCL
// (PassDecision), and the call then continues with the row nccl.
#pragma once
#include <cstdint>

#include "comm/call.h"
#include "intra/nccl_group.h"
#include "intra/node_barrier.h"

namespace slimpi::intra {

struct Transport {
  const char* name;  // as in SLIMPI_INTRA

  // Returns whether calls of the communicator can begin with this row; the same on all ranks.
  bool (*possible)(comm::Communicator& communicator);

  // Reserves the scratch memory of the two functions below, or is null if they need none. Does not
  // communicate.
  Status (*reserve)(const comm::Call& call, const comm::InterNodeGroup& group);

  // The functions for intra_reduce_scatter() and intra_all_gather(). If the ranks agree on another
  // row, the reduce-scatter adds nothing and sets call.node_path to that row, which the caller then
  // runs.
  Status (*reduce_scatter)(comm::Call& call, const comm::InterNodeGroup& group);
  Status (*all_gather)(comm::Call& call, const comm::InterNodeGroup& group);
};

const Transport& transport(comm::NodePath path);

// The functions in the table of transports. transport_NAME.cpp defines those of the transport NAME.

// The transport shm: the ranks exchange through message buffers in the segment (host memory).
bool can_share_memory(comm::Communicator& communicator);
Status reserve_for_shm(const comm::Call& call, const comm::InterNodeGroup& group);
Status reduce_scatter_by_shm(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_shm(comm::Call& call, const comm::InterNodeGroup& group);

// The transport mpi: the ranks exchange by MPI messages, which work between any ranks.
Status reserve_for_mpi(const comm::Call& call, const comm::InterNodeGroup& group);
Status reduce_scatter_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_mpi(comm::Call& call, const comm::InterNodeGroup& group);

// The row nccl: the ranks send from GPU to GPU by NCCL (nccl_group.h).
Status reduce_scatter_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);
Status all_gather_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// Run the whole allreduce of one node, adding in pairs of neighbors. If the ranks agree on NCCL,
// allreduce_by_shm() adds nothing and sets call.node_path to nccl.
Status allreduce_by_shm(comm::Call& call, const comm::InterNodeGroup& group);
Status allreduce_by_nccl(comm::Call& call, const comm::InterNodeGroup& group);

// Returns the bytes of scratch memory for adding one block by shm, that is, for the values that
// `size` node-local ranks have of one shard's piece.
std::size_t shared_scratch_bytes(std::size_t size, const comm::InterNodeGroup& group);

// The fields of the word that a rank publishes about a call. After the next barrier, decide() reads
// the words of all ranks of the node, and decides the same on all of them.
namespace published {

constexpr std::uint64_t kReadiness = 0x3;  // NcclGroup::Readiness

// A hash that identifies the call's sum (ActiveCall::sum_word). Ranks with different hashes make
// different sums, which is an error of the program.
constexpr int kSumShift = 32, kSumBits = 32;
constexpr std::uint64_t kSum = std::uint64_t(0xffffffff) << kSumShift;

}  // namespace published

struct PassDecision {
  bool nccl;   // NCCL runs the call
  bool open;   // the ranks first open NCCL, since all can and it is not open
  bool again;  // readiness differs: all ranks copy the first block again (BlockPass::agree)
};

inline PassDecision decide(const NodeBarrier::Published& words) {
  if (!words.alike(published::kReadiness)) return {false, false, true};
  const std::uint64_t all = words.all & published::kReadiness;
  return {all == NcclGroup::ready, all == NcclGroup::not_open, false};
}

}  // namespace slimpi::intra
