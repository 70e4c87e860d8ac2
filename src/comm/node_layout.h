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

// Returns part `index` of `count` elements that are divided into `parts`. A part has whole blocks
// of `align` elements; the first parts may be one block longer than the other parts. The last block
// may be short. align >= 1.
Range chunk_of(std::uint64_t count, int parts, int index, std::uint64_t align);

// Returns whether all values that are encoded together form one bucket (values that share one
// scale), of any length. If so, a chunk travels in one message.
bool one_bucket(const kernels::Format& format);

// Returns the multiple of elements at which shards and chunks start: a whole bucket; 64 without
// buckets; 1 with one_bucket().
std::uint64_t chunk_alignment(const kernels::Format& format);

// Returns the number of elements that divides the length of each segment (the values of one
// message), except the last segment of a chunk.
std::uint64_t segment_alignment(const kernels::Format& format);

// Returns the format for the exchange of `count` elements that are divided into `parts` chunks.
// Changes only the packed codec, whose `bucket` is the longest allowed tile (values whose buckets
// share a budget of bits): the result's `bucket` divides the longest chunk into as few tiles as
// possible, all of about one length.
kernels::Format with_tiles(const kernels::Format& format, std::uint64_t count, int parts);
// As with_tiles(), for chunks of which the longest has `longest` elements.
kernels::Format with_tiles_for_longest(const kernels::Format& format, std::uint64_t longest);

struct NodeLayout {
  int rank = 0, size = 1;                  // in the communicator
  std::vector<int> node_of;                // node of each rank; nodes are numbered by lowest rank
  std::vector<std::vector<int>> ranks_of;  // ranks of each node, ascending
  std::vector<int> leaders;                // local rank of each node's leader
  int smallest = 1;                        // number of ranks of the smallest node
  int local = 0;                           // this rank's position among the ranks of its node

  int nodes() const { return int(ranks_of.size()); }
  int node_of_rank(int other) const { return node_of[std::size_t(other)]; }
  const std::vector<int>& ranks_on(int node) const { return ranks_of[std::size_t(node)]; }
  int leader_on(int node) const { return leaders[std::size_t(node)]; }
  int node() const { return node_of_rank(rank); }
  const std::vector<int>& node_ranks() const { return ranks_on(node()); }
  int local_rank() const { return local; }
  int local_rank_of(int other) const;  // position of a rank among the ranks of its node
  // Returns this rank's part of the bytes that all ranks send between nodes, if every owner of a
  // shard sends the same number. The parts of the ranks add up to `bytes`.
  std::uint64_t part_of(std::uint64_t bytes, Hierarchy hierarchy) const;
};

// Returns how many nodes the options make of the ranks of a communicator; 0 if MPI finds the nodes.
int nodes_by_options(const Config& config, int ranks);

// Which ranks exchange which shard between nodes. The vector is divided into `shards` shards. One
// rank of every node owns each shard and exchanges it with the ranks of the other nodes that own
// the same shard. The other ranks of a node own nothing.
//   flat      one group of all ranks, one shard, no work inside a node
//   leader    one group of one rank of each node, its leader; one shard
//   sharded   as many groups, and shards, as the smallest node has ranks
struct InterNodeGroup {
  bool flat = false, leader = false;
  int shards = 1;
  int shard_index = -1;      // index of this rank's shard; -1: it owns none
  std::vector<int> peers;    // ranks of this rank's group, itself included, in the nodes' order
  int index = 0;             // position of this rank in peers
  int first = 0;             // local rank that owns shard 0 on this rank's node
  std::uint64_t owners = 0;  // a digest of which rank owns which shard; the same on all ranks

  // Return the local rank that owns a shard on this node, and the shard of a local rank, or -1.
  int owner(int shard) const { return first + shard; }
  int shard_index_of(int local) const {
    return local < first || local >= first + shards ? -1 : local - first;
  }
};

}  // namespace slimpi::comm
