// SPDX-License-Identifier: BSD-3-Clause
#include "comm/scatter.h"

#include <algorithm>
#include <utility>

namespace slimpi::comm {

Scatter::Scatter(const NodeLayout& layout, const InterNodeGroup& group,
                 std::pmr::vector<Range> its_blocks, std::pmr::memory_resource* memory)
    : blocks(std::move(its_blocks)),
      places(blocks.size(), memory),
      shards(std::size_t(group.shards), memory),
      chunks(memory),
      node(std::size_t(group.shards), memory) {
  if (group.flat) {
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) places[rank] = blocks[rank].first;
    chunks.assign(blocks.begin(), blocks.end());
    shards[0] = {0, blocks.back().first + blocks.back().count};
    node[0] = chunks[std::size_t(group.index)];
    return;
  }
  if (group.shard_index >= 0) chunks.resize(std::size_t(layout.nodes()));
  std::uint64_t next = 0;
  for (int shard = 0; shard < group.shards; ++shard) {
    const std::uint64_t first_of_shard = next;
    for (int other = 0; other < layout.nodes(); ++other) {
      const std::vector<int>& ranks = layout.ranks_on(other);
      const std::uint64_t first = next;
      for (std::size_t local = std::size_t(shard); local < ranks.size();
           local += std::size_t(group.shards)) {
        const Range& block = blocks[std::size_t(ranks[local])];
        places[std::size_t(ranks[local])] = next;
        if (next != block.first && block.count != 0) in_order = false;
        next += block.count;
      }
      const Range chunk{first, next - first};
      if (shard == group.shard_index) chunks[std::size_t(other)] = chunk;
      if (other == layout.node()) node[std::size_t(shard)] = chunk;
    }
    shards[std::size_t(shard)] = {first_of_shard, next - first_of_shard};
  }
  shared = layout.node_ranks().size() > std::size_t(group.shards);
}

// If several blocks begin at the same element, only the last one of them has elements.
std::uint64_t Gather::place_of_element(std::uint64_t element) const {
  const auto after = std::upper_bound(
      blocks.begin(), blocks.end(), element,
      [](std::uint64_t wanted, const Range& block) { return wanted < block.first; });
  const auto rank = std::size_t(after - blocks.begin()) - 1;
  return places[rank] + (element - blocks[rank].first);
}

std::uint64_t longest_of(std::span<const Range> ranges) {
  std::uint64_t longest = 0;
  for (const Range& range : ranges) longest = std::max(longest, range.count);
  return longest;
}

}  // namespace slimpi::comm
