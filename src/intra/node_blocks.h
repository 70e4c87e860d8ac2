// SPDX-License-Identifier: BSD-3-Clause
// The blocks in which a vector passes between the ranks of a node: a piece of every shard each. The
// same on all ranks of the node, also on those that own no shard.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "comm/call.h"
#include "intra/intra_node.h"

namespace slimpi::intra {

class NodeBlocks {
 public:
  NodeBlocks(const comm::Call& call, const comm::InterNodeGroup& group)
      : own_(group.shard_index), shards_(&call.scratch.objects) {
    shards_.reserve(std::size_t(group.shards));
    for (int shard_index = 0; shard_index < group.shards; ++shard_index) {
      shards_.push_back(shard_range(call.count, call.plan.format, group, shard_index));
      longest_ = std::max(longest_, shards_.back().count);
    }
  }

  // `piece`: floats of a shard in one block, at most.
  void divide(std::uint64_t piece) {
    piece_ = piece;
    blocks_ = (longest_ + piece - 1) / piece;
  }
  std::uint64_t piece() const { return piece_; }
  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t longest() const { return longest_; }  // shard

  const std::pmr::vector<comm::Range>& shards() const { return shards_; }
  // The piece of a shard in a block, and that of this rank's shard; empty behind the shard's end,
  // and where this rank owns none.
  comm::Range part(int shard_index, std::uint64_t block) const {
    const comm::Range& shard = shards_[std::size_t(shard_index)];
    if (block * piece_ >= shard.count) return {};
    return {shard.first + block * piece_, std::min(piece_, shard.count - block * piece_)};
  }
  comm::Range own(std::uint64_t block) const {
    return own_ < 0 ? comm::Range{} : part(own_, block);
  }

 private:
  const int own_;
  std::pmr::vector<comm::Range> shards_;
  std::uint64_t longest_ = 0, piece_ = 1, blocks_ = 0;
};

}  // namespace slimpi::intra
