// SPDX-License-Identifier: BSD-3-Clause
// The shm transport: a pass through message buffers in host memory that the ranks of a node share.
//
// The vector passes in blocks. For each block: every rank copies into its message buffer what its
// node-local ranks own, and passes a barrier. Then every owner adds its shard from all message
// buffers. If the result is needed at once, the owner copies it into its own message buffer, from
// which the others copy it. Three blocks are in flight, so one barrier per block is enough: a
// message buffer is written again only after a barrier that every rank reached after reading it.
// While a rank writes a block, others read the two before it at most; while it writes the first
// block of a call, the last one of the call before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/exceptions.h"
#include "intra/node_pass.h"
#include "intra/node_state.h"
#include "intra/transports.h"

namespace slimpi::intra {

// Floats of one shard in a block of `block` floats. All shards together have no more than a block:
// opening a segment ensures that a block has kLeastPiece floats of each.
inline std::uint64_t piece_of(const comm::InterNodeGroup& group, std::uint64_t block) {
  return std::max(block / std::uint64_t(group.shards) / kLeastPiece * kLeastPiece, kLeastPiece);
}

class BlockPass : NodePass {
 public:
  BlockPass(comm::Call& call, const comm::InterNodeGroup& group);

  // The two passes of a hierarchical call, and the one of a call on one node; see transports.h.
  Status sum();
  Status share();
  Status allreduce();

 private:
  using Where = NodeCopies::Where;

  // The steps of the first barrier: each rank offers, by what its own buffers allow; then all know
  // each other's words, and agree.
  Status offer();
  Status agree();
  // The last step. Every rank has passed the same message buffers, so all agree on the next call's.
  void end() { ring().pass(message_buffers_, blocks_.blocks()); }
  Status settle(Status status);

  // Copies this rank's values of the others' shards into its message buffer of the block.
  Status copy_to_others(std::uint64_t block);
  // Copies this rank's sum of a block into its message buffer; the others fetch it after the next
  // barrier.
  Status copy_sum(std::uint64_t block, const float* sum);
  // Copies the other finished shards of a block into `out`.
  Status fetch(std::uint64_t block);
  template <typename Add>
  Status add(std::uint64_t block, const Add& add_addends);
  // The node-local ranks' values of this rank's shard in a block, in rank order, in memory that the
  // kernels can read.
  Status find_addends(std::uint64_t block, std::pmr::vector<const float*>& addends);

  // Where a shard of a block lies in the message buffer of local rank `local`, the only one that
  // writes there.
  float* place(int local, int shard_index, std::uint64_t block) const {
    return shared_.segment().data(local) + message_buffers_.place(block) +
           std::uint64_t(shard_index) * blocks_.piece();
  }
  Status copy(float* to, const float* from, std::uint64_t count, Where where) {
    const Slice slice =
        node_slice(call_, where == Where::memory ? "node copy, non-temporal" : "node copy",
                   count * sizeof(float));
    return copies_.copy(to, from, count * sizeof(float), where);
  }
  // Waits for the copies and additions on the stream; then other ranks may see the message buffer.
  Status copied();
  Status barrier();

  // Scratch of additions; of this rank alone.
  float* scratch() const { return call_.scratch.node_partial().data(); }
  // By which stores this rank writes its message buffer.
  Where stores() const { return stores_; }

  NodeBarrier& shared_;
  // From this size on, a result evicts everything else from the caches, and has left them itself
  // when the program reads it. It is written by non-temporal stores (docs/DESIGN.md).
  static constexpr std::uint64_t kLargeBytes = 4 << 20;
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;

  Status run_sum();
  Status run_share();
  Status run_allreduce();
  std::string describe_sums() const;
  NcclGroup& nccl() const { return *shared_.segment().nccl; }
  BufferRing& ring() const { return shared_.segment().ring; }
  // Whether kernels can read the others' buffers where they are.
  bool readable() const { return !call_.device.staged; }

  const Where stores_ = shared_.cross_cache() ? Where::memory : Where::caches;
  BufferRing::Buffers message_buffers_;
  NodeCopies copies_{call_};
};

}  // namespace slimpi::intra
