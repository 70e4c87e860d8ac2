// SPDX-License-Identifier: BSD-3-Clause
// The shm transport: a pass through message buffers in host memory that the ranks of a node share.
//
// The vector passes in blocks. For each block, every rank copies its values of the other ranks'
// shards into its message buffer, and passes a barrier. Then every owner adds its shard from all
// message buffers. If the result is needed at once, the owner copies it into its own message
// buffer, and the other ranks copy it from there. Three blocks are in flight, so one barrier per
// block is enough: a rank writes a message buffer again only after a barrier that every rank
// reached after reading the buffer. While a rank writes a block, other ranks read at most the two
// blocks before it; while it writes the first block of a call, the last block of the call before.
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

// Returns the floats of one shard in a block of `block` floats. All shards fit into the block,
// because open_segment() makes blocks of at least kLeastPiece floats for each shard.
inline std::uint64_t piece_of(const comm::InterNodeGroup& group, std::uint64_t block) {
  return std::max(block / std::uint64_t(group.shards) / kLeastPiece * kLeastPiece, kLeastPiece);
}

class BlockPass : NodePass {
 public:
  BlockPass(comm::Call& call, const comm::InterNodeGroup& group);

  // sum() and share() are the two passes of a hierarchical call; allreduce() is the pass of a call
  // on one node. See transports.h.
  Status sum();
  Status share();
  Status allreduce();

 private:
  using Where = NodeCopies::Where;

  // The steps at the first barrier. offer() publishes what this rank's buffers allow. agree() makes
  // the same decision on all ranks, from the words of all.
  Status offer();
  Status agree();
  // Ends the pass. Every rank has used the same message buffers, so all agree on those of the next
  // call.
  void end() { ring().pass(message_buffers_, blocks_.blocks()); }
  Status settle(Status status);

  // Copies this rank's values of the other ranks' shards into its message buffer of the block.
  Status copy_to_others(std::uint64_t block);
  // Copies this rank's sum of a block into its message buffer. The other ranks fetch it after the
  // next barrier.
  Status copy_sum(std::uint64_t block, const float* sum);
  // Copies the other finished shards of a block into `out`.
  Status fetch(std::uint64_t block);
  template <typename Add>
  Status add(std::uint64_t block, const Add& add_addends);
  // Finds the node-local ranks' values of this rank's shard in a block, in rank order, in memory
  // that the kernels can read.
  Status find_addends(std::uint64_t block, std::pmr::vector<const float*>& addends);

  // Returns the place of a shard of a block in the message buffer of local rank `local`. Only that
  // rank writes there.
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
  // Waits for the copies and additions on the stream. Then other ranks may read the message buffer.
  Status copied();
  Status barrier();

  // Returns this rank's scratch memory for additions.
  float* scratch() const { return call_.scratch.node_partial().data(); }
  // Returns the kind of stores by which this rank writes its message buffer.
  Where stores() const { return stores_; }

  NodeBarrier& shared_;
  // The size from which on a result is written by non-temporal stores. So large a result would
  // evict everything else from the caches, and would no longer be there when the program reads it
  // (docs/DESIGN.md).
  static constexpr std::uint64_t kLargeBytes = 4 << 20;
  const Where in_out_ = call_.count * sizeof(float) >= kLargeBytes ? Where::memory : Where::caches;

  Status run_sum();
  Status run_share();
  Status run_allreduce();
  std::string describe_sums() const;
  NcclGroup& nccl() const { return *shared_.segment().nccl; }
  BufferRing& ring() const { return shared_.segment().ring; }
  // Returns whether kernels can read the other ranks' message buffers in place.
  bool readable() const { return !call_.device.staged; }

  const Where stores_ = shared_.cross_cache() ? Where::memory : Where::caches;
  BufferRing::Buffers message_buffers_;
  NodeCopies copies_{call_};
};

}  // namespace slimpi::intra
