// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator share a node, and which ranks exchange which shard between nodes.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/format.h"
#include "options/config.h"

namespace slimpi::comm {

// Consecutive elements of a buffer.
struct Range {
  std::uint64_t first = 0, count = 0;
};

// Returns part `index` of `count` elements that are divided into `parts`. Parts consist of whole
// blocks of `align` (at least 1) elements, and the first parts may have one block more than the
// others. The last block may be short.
Range chunk_of(std::uint64_t count, int parts, int index, std::uint64_t align);

// Returns whether all values that are encoded together form one bucket (values that share a scale)
// of any length. If so, a chunk travels in one message.
bool one_bucket(const kernels::Format& format);

// Returns n such that shards and chunks begin at multiples of n elements: the length of a bucket,
// or 64 if the codec has no buckets, or 1 with one_bucket().
std::uint64_t chunk_alignment(const kernels::Format& format);

// Returns a divisor of the length of every segment (the values of one message) except the last of a
// chunk.
std::uint64_t segment_alignment(const kernels::Format& format);

// Returns the format for exchanging `count` elements that are divided into `parts` chunks. The
// formats of all codecs but packed are returned as they are. With packed, `format.bucket` is the
// longest tile allowed (values whose buckets share a budget of bits), and the `bucket` of the
// result is the tile length that divides the longest chunk into the fewest tiles of about one
// length.
kernels::Format with_tiles(const kernels::Format& format, std::uint64_t count, int parts);
// Does the same as with_tiles() for chunks, the longest of which has `longest` elements.
kernels::Format with_tiles_for_longest(const kernels::Format& format, std::uint64_t longest);

struct NodeLayout {
  int rank = 0, size = 1;                  // in the communicator
  std::vector<int> node_of;                // by rank; nodes are numbered by their lowest ranks
  std::vector<std::vector<int>> ranks_of;  // the ranks of each node, ascending
  std::vector<int> leaders;                // each node's leader, as a local rank
  int smallest = 1;                        // the number of ranks of the smallest node
  int local = 0;                           // this rank's local rank

  int nodes() const { return int(ranks_of.size()); }
  int node_of_rank(int other) const { return node_of[std::size_t(other)]; }
  const std::vector<int>& ranks_on(int node) const { return ranks_of[std::size_t(node)]; }
  int leader_on(int node) const { return leaders[std::size_t(node)]; }
  int node() const { return node_of_rank(rank); }
  const std::vector<int>& node_ranks() const { return ranks_on(node()); }
  int local_rank() const { return local; }
  int local_rank_of(int other) const;  // another rank's local rank on its node
  // Returns this rank's share of the bytes that all ranks send between nodes, if every owner of a
  // shard sends as many as any other. The shares add up to `bytes`.
  std::uint64_t part_of(std::uint64_t bytes, Hierarchy hierarchy) const;
};

// Returns how many nodes the options make of the ranks of a communicator, or 0 if MPI finds the
// nodes.
int nodes_by_options(const Config& config, int ranks);

// Which ranks exchange which shard between nodes. The vector is divided into `shards` shards. One
// rank of every node owns each shard, and exchanges it with the owners of this shard on the other
// nodes. Further ranks of a node own nothing.
//   flat      one group of all ranks, one shard, no work inside a node
//   leader    one group of one rank of each node, its leader; one shard
//   sharded   as many groups, and shards, as the smallest node has ranks
struct InterNodeGroup {
  bool flat = false, leader = false;
  int shards = 1;
  int shard_index = -1;      // of this rank's shard, or -1 if it owns none
  std::vector<int> peers;    // the ranks of this rank's group, itself included, in the nodes' order
  int index = 0;             // this rank's position in `peers`
  int first = 0;             // the local rank that owns shard 0 on this rank's node
  std::uint64_t owners = 0;  // a digest of which rank owns which shard; the same on all ranks

  // Return the local rank that owns a shard on this node, and the shard that a local rank owns, or
  // -1.
  int owner(int shard) const { return first + shard; }
  int shard_index_of(int local) const {
    return local < first || local >= first + shards ? -1 : local - first;
  }
};

}  // namespace slimpi::comm
