// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of a reduce-scatter are, and which rank computes the sum of which block. Also
// where the blocks of an all-gather are.
//
// Every rank receives one block of the sum. The nodes exchange a vector with the blocks in a
// different order, the exchange's order: by shard, then by node, then by rank, so that each shard
// is one range. Each member of a shard's inter-node group owns a chunk of the shard: the blocks of
// the shard that belong to ranks of the member's node. If every rank owns a shard, a chunk is the
// block of one rank. A rank that owns no shard gets its block from another rank of its node.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "comm/node_layout.h"

namespace slimpi::comm {

// Returns the number of elements of the longest range.
std::uint64_t longest_of(std::span<const Range> ranges);

// The blocks of an all-gather.
struct Gather {
  explicit Gather(std::pmr::memory_resource* memory) : blocks(memory), places(memory) {}

  // Has the block of each rank, as a range of the vector in which all blocks are contiguous. The
  // list is the same on all ranks.
  std::pmr::vector<Range> blocks;
  // Has, for each rank, the element of this rank's result where the block of that rank begins.
  // Ranks may differ, and there may be gaps between blocks, which are never written.
  std::pmr::vector<std::uint64_t> places;

  Range place(int rank) const {
    return {places[std::size_t(rank)], blocks[std::size_t(rank)].count};
  }
  // Returns where an element of the vector of all blocks is in the result.
  std::uint64_t place_of_element(std::uint64_t element) const;
};

struct Scatter {
  // Makes the lists below in `memory`. `blocks` has, by rank, the range of the program's vector
  // whose sum this rank receives.
  Scatter(const NodeLayout& layout, const InterNodeGroup& group, std::pmr::vector<Range> blocks,
          std::pmr::memory_resource* memory);

  const std::pmr::vector<Range> blocks;
  std::pmr::vector<std::uint64_t>
      places;                      // by rank: where its block begins in the exchange's order
  bool in_order = true;            // whether that is the program's order
  std::pmr::vector<Range> shards;  // in the exchange's order, like the next two lists
  std::pmr::vector<Range> chunks;  // of the group's members; empty if this rank owns no shard
  std::pmr::vector<Range> node;    // by shard: what its owner on this node sums
  bool shared = false;             // a chunk of this rank's node has blocks of several ranks
};

}  // namespace slimpi::comm
