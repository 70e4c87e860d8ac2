// SPDX-License-Identifier: BSD-3-Clause
// The places of the blocks of a reduce-scatter, and which rank makes the sum of which block. Also
// the places of the blocks of an all-gather.
//
// Every rank gets one block of the sum. The nodes exchange a vector in which the blocks have an
// order of their own, the exchange's order: by shard, then by node, then by rank. So each shard is
// one range. A member of the shard's inter-node group owns a chunk of the shard: the blocks of the
// member's node that belong to the shard. If every rank owns a shard, a chunk is the block of one
// rank. A rank that owns no shard gets its block from another rank of its node.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "comm/node_layout.h"

namespace slimpi::comm {

// Returns the elements of the longest range.
std::uint64_t longest_of(std::span<const Range> ranges);

// The blocks of an all-gather.
struct Gather {
  explicit Gather(std::pmr::memory_resource* memory) : blocks(memory), places(memory) {}

  // By rank: the block in the vector of all contiguous blocks; the same on all ranks.
  std::pmr::vector<Range> blocks;
  // By rank: the element of this rank's result where that rank's block begins. Ranks may differ,
  // and there may be gaps, which are never written.
  std::pmr::vector<std::uint64_t> places;

  Range place(int rank) const {
    return {places[std::size_t(rank)], blocks[std::size_t(rank)].count};
  }
  // Returns where the element of the vector of all blocks lies in the result.
  std::uint64_t place_of_element(std::uint64_t element) const;
};

struct Scatter {
  // Makes the lists below, in `memory`. `blocks`: by rank, the range of the program's vector whose
  // sum that rank gets.
  Scatter(const NodeLayout& layout, const InterNodeGroup& group, std::pmr::vector<Range> blocks,
          std::pmr::memory_resource* memory);

  const std::pmr::vector<Range> blocks;
  std::pmr::vector<std::uint64_t>
      places;                      // by rank: where its block begins in the exchange's order
  bool in_order = true;            // the exchange's order is the program's
  std::pmr::vector<Range> shards;  // in the exchange's order, as the next two lists
  std::pmr::vector<Range> chunks;  // chunks of the group; empty if this rank owns no shard
  std::pmr::vector<Range> node;    // by shard: the chunk that the shard's owner on this node sums
  bool shared = false;             // a chunk of this rank's node has blocks of several ranks
};

}  // namespace slimpi::comm
