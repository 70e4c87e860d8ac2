// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator share a node, which ranks exchange which shard between nodes, and
// which rank of a reduce-scatter makes which part of the sum.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "kernels/format.h"
#include "options/option_types.h"

namespace slimpi::comm {

// Consecutive elements of a buffer.
struct Range {
  std::uint64_t first = 0, count = 0;
};

// Part `index` when `count` elements are divided into `parts`: whole blocks of `align` elements,
// the first parts one block longer than the others. The last block may be short. align >= 1.
Range chunk_of(std::uint64_t count, int parts, int index, std::uint64_t align);

// Whether what is encoded together is a single bucket, however long: nothing can divide it.
bool one_bucket(const kernels::Format& format);

// Shards and chunks start at multiples of this many elements: whole buckets, or 64 without buckets.
std::uint64_t chunk_alignment(const kernels::Format& format);

// Segments of a chunk are multiples of this, unless they end with the chunk.
std::uint64_t segment_alignment(const kernels::Format& format);

// The format for the exchange of `count` elements that are divided into `parts` chunks: with the
// packed codec their tiles are about as long as each other, and the longest that fit.
kernels::Format with_tiles(const kernels::Format& format, std::uint64_t count, int parts);
// The same for chunks of which the longest has `longest` elements.
kernels::Format with_tiles(const kernels::Format& format, std::uint64_t longest);

struct NodeLayout {
  int rank = 0, size = 1;                  // in the communicator
  std::vector<int> node_of;                // node of each rank; nodes are numbered by lowest rank
  std::vector<std::vector<int>> ranks_of;  // ranks of each node, ascending
  std::vector<int> leaders;                // local rank of each node's leader
  int smallest = 1;                        // ranks of the smallest node
  int local = 0;                           // this rank's position among the ranks of its node

  int nodes() const { return int(ranks_of.size()); }
  int node() const { return node_of[std::size_t(rank)]; }
  const std::vector<int>& node_ranks() const { return ranks_of[std::size_t(node())]; }
  int local_rank() const { return local; }
  int local_rank_of(int other) const;  // position of a rank among the ranks of its node
  // This rank's part of the bytes that all ranks send between nodes, if all that own a shard send
  // the same number. The parts of the ranks add up to `bytes`.
  std::uint64_t part_of(std::uint64_t bytes, Hierarchy hierarchy) const;
};

// Which ranks exchange which shard between nodes. The vector is divided into `shards` shards. One
// rank of every node owns each shard and exchanges it with the ranks of the other nodes that own
// the same shard. The other ranks of a node own nothing.
//   flat      one group of all ranks, one shard, no work inside a node
//   leader    one group of one rank of each node, its leader; one shard
//   sharded   as many groups, and shards, as the smallest node has ranks
struct InterNodeGroup {
  bool flat = false, leader = false;
  int shards = 1;
  int shard_index = -1;      // of this rank's shard; -1: it owns none
  std::vector<int> peers;    // ranks of this rank's group, itself included, in the nodes' order
  int index = 0;             // position of this rank in peers
  int first = 0;             // local rank that owns shard 0 on this rank's node
  std::uint64_t owners = 0;  // a digest of which rank owns which shard; the same on all ranks

  // The local rank that owns a shard on this node; the shard of a local rank, or -1.
  int owner(int shard) const { return first + shard; }
  int shard_of(int local) const {
    return local < first || local >= first + shards ? -1 : local - first;
  }
};
// Where the blocks of a reduce-scatter lie, and which rank makes the sum of which.
//
// Every rank gets one block of the sum. The vector in which the nodes exchange has the blocks in
// another order than the program's: by shard, then by node, then by rank. So one range is a shard,
// and each member of its inter-node group owns a range of that, its chunk: the blocks of its node
// that belong to the shard. Where every node has as many ranks, that is the rank's own block;
// further ranks of a larger node get theirs inside the node.
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
