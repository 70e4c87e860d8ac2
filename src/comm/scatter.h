// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of a reduce-scatter lie, and which rank makes the sum of which.
//
// Every rank gets one block of the sum. The vector in which the nodes exchange has the blocks in
// another order than the program's: by shard, then by node, then by rank. So one range is a shard,
// and each member of its inter-node group owns a range of that, its chunk: the blocks of its node
// that belong to the shard. Where every node has as many ranks, that is the rank's own block;
// further ranks of a larger node get theirs inside the node.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "comm/node_layout.h"

namespace slimpi::comm {

struct Scatter {
  // `blocks`: by rank, in the program's vector. Lists lie in `memory`.
  Scatter(const NodeLayout& layout, const InterNodeGroup& group, std::pmr::vector<Range> blocks,
          std::pmr::memory_resource* memory);

  const std::pmr::vector<Range> blocks;
  std::pmr::vector<std::uint64_t>
      places;                      // by rank: where its block begins in the exchange's order
  bool in_order = true;            // the exchange's order is the program's
  std::pmr::vector<Range> shards;  // in the exchange's order, as the next two
  std::pmr::vector<Range> chunks;  // of the members of this rank's group; empty if it owns no shard
  std::pmr::vector<Range> node;    // by shard: the chunk that its owner on this rank's node makes
  bool shared = false;             // a chunk of this rank's node has blocks of several ranks

  // Floats of the longest chunk of the group.
  std::uint64_t longest() const;
};

}  // namespace slimpi::comm
