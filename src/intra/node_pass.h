// SPDX-License-Identifier: BSD-3-Clause
// The code that the transports share. A transport passes a vector, block by block, between the
// ranks of a node (transports.h), and this file computes the ranges of the blocks.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "comm/call.h"
#include "comm/communicator.h"
#include "intra/intra_node.h"
#include "intra/nccl_group.h"
#include "observe/trace.h"

namespace slimpi::intra {

// The blocks of a vector, each of which has a piece of every shard (the part of the vector that one
// rank owns). All ranks of the node have the same blocks, even those that own no shard.
class NodeBlocks {
 public:
  NodeBlocks(const comm::Call& call, const comm::InterNodeGroup& group)
      : shards_(&call.scratch.objects) {
    shards_.reserve(std::size_t(group.shards));
    for (int shard_index = 0; shard_index < group.shards; ++shard_index) {
      shards_.push_back(shard_of_call(call, group, shard_index));
      longest_ = std::max(longest_, shards_.back().count);
    }
  }

  // `piece` is the most floats of a shard in one block.
  void divide(std::uint64_t piece) {
    piece_ = piece;
    blocks_ = (longest_ + piece - 1) / piece;
  }
  std::uint64_t piece() const { return piece_; }
  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t longest() const { return longest_; }  // the floats of the longest shard

  const std::pmr::vector<comm::Range>& shards() const { return shards_; }
  // Returns the piece of a shard in a block, empty if the shard ends before this block.
  comm::Range part(int shard_index, std::uint64_t block) const {
    const comm::Range& shard = shards_[std::size_t(shard_index)];
    if (block * piece_ >= shard.count) return {};
    return {shard.first + block * piece_, std::min(piece_, shard.count - block * piece_)};
  }

 private:
  std::pmr::vector<comm::Range> shards_;
  std::uint64_t longest_ = 0, piece_ = 1, blocks_ = 0;
};

class NodePass {
 public:
  NodePass(const NodePass&) = delete;
  NodePass& operator=(const NodePass&) = delete;

 protected:
  NodePass(comm::Call& call, const comm::InterNodeGroup& group)
      : call_(call),
        group_(group),
        exchange_(call.communicator.exchange()),
        me_(call.communicator.layout().local_rank()),
        size_(int(call.communicator.layout().node_ranks().size())),
        blocks_(call, group) {}
  ~NodePass() = default;

  // Ends a pass, on failed ranks as well. After a failure each rank aborts its NCCL communicator,
  // because the ranks may have queued different transfers, and a GPU could hang.
  Status settle(Status status, NcclGroup& nccl) const {
    status = exchange_.settle(status, {});
    if (status != Status::ok) nccl.abort();
    return status;
  }

  // Returns the piece of this rank's shard in a block, empty if the rank owns no shard.
  comm::Range own(std::uint64_t block) const {
    return group_.shard_index < 0 ? comm::Range{} : blocks_.part(group_.shard_index, block);
  }
  // Calls each(owner, shard index, range) for every piece in a block that another rank owns and
  // that is not empty.
  template <typename Each>
  Status for_others(std::uint64_t block, const Each& each) const {
    for (int shard_index = 0; shard_index < group_.shards; ++shard_index)
      if (const comm::Range theirs = blocks_.part(shard_index, block);
          shard_index != group_.shard_index && theirs.count != 0)
        SLIMPI_TRY(each(group_.owner(shard_index), shard_index, theirs));
    return Status::ok;
  }

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  comm::Exchange& exchange_;
  const int me_, size_;  // local rank, ranks of the node
  NodeBlocks blocks_;
};

// Copies between a rank's device and memory that node-local ranks can access, on the call's stream.
// In the trace, one interval shows all copies between two waits for the stream, with the additions
// that were queued between them.
class NodeCopies {
 public:
  explicit NodeCopies(const comm::Call& call) : call_(call) {}

  // Where a copy goes: to this core's caches or, by non-temporal stores if the device has them, to
  // memory.
  enum class Where { caches, memory };

  Status copy(void* to, const void* from, std::size_t bytes, Where where = Where::caches) {
    if (bytes_ == 0) queued_ = Trace::Clock::now();
    bytes_ += bytes;
    const bool past = where == Where::memory && call_.device.copy_nontemporal != nullptr;
    return (past ? call_.device.copy_nontemporal : call_.device.copy)(to, from, bytes,
                                                                      call_.stream);
  }

  // Ends the interval in the trace. Called once the stream has completed all its work.
  void done() {
    Trace* const trace = Trace::running();
    if (trace != nullptr && call_.device.staged && bytes_ != 0)
      trace->add("node copies", queued_, Trace::Clock::now(), bytes_, Trace::kDevice);
    bytes_ = 0;
  }

 private:
  const comm::Call& call_;
  Trace::Clock::time_point queued_{};
  std::uint64_t bytes_ = 0;  // since the last wait
};

// Returns the trace's slice for a step inside the node that writes `bytes` bytes. On a staged
// device (a GPU) the slice shows no bytes, because the step only queues its work; the copies are
// shown in a row of the device.
inline Slice node_slice(const comm::Call& call, const char* name, std::uint64_t bytes) {
  return Slice(name, call.device.staged ? 0 : bytes);
}

}  // namespace slimpi::intra
