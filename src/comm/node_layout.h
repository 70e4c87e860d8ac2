// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator share a node, and which ranks exchange which shard between nodes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/format.h"
#include "mpi/api.h"
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

  int nodes() const { return int(ranks_of.size()); }
  int node() const { return node_of[std::size_t(rank)]; }
  const std::vector<int>& node_ranks() const { return ranks_of[std::size_t(node())]; }
  int local_rank() const { return local_rank_of(rank); }
  int local_rank_of(int other) const;  // position of a rank among the ranks of its node
};

// Finds a key of this rank's node, equal on the ranks of one node and nowhere else. With
// ranks_per_node = k, every k consecutive ranks of MPI_COMM_WORLD are one node (of `comm` if
// MPI_COMM_WORLD does not exist). With 0, the ranks that can share memory are one node:
// MPI_Comm_split_type decides, which is collective over `comm` and blocks. Allocates nothing unless
// MPI fails.
Status find_node_key(const mpi::Api& api, mpi::Comm comm, std::uint64_t ranks_per_node,
                     std::uint64_t* key);

// The layout for these keys, one for each rank. Not collective.
NodeLayout make_node_layout(int rank, std::span<const std::uint64_t> keys);

// Which ranks exchange which shard between nodes. The vector is divided into `shards` shards. One
// rank of every node owns each shard and exchanges it with the ranks of the other nodes that own
// the same shard. The other ranks of a node own nothing.
//   flat      one group of all ranks, one shard, no work inside a node
//   leader    one group of one rank of each node, its leader; one shard
//   sharded   as many groups, and shards, as the smallest node has ranks
struct InterNodeGroup {
  bool flat = false, leader = false;
  int shards = 1;
  int shard_index = -1;    // of this rank's shard; -1: it owns none
  std::vector<int> peers;  // ranks of this rank's group, itself included, in the nodes' order
  int index = 0;           // position of this rank in peers
  int first = 0;           // local rank that owns shard 0 on this rank's node

  // The local rank that owns a shard on this node; the shard of a local rank, or -1.
  int owner(int shard) const { return first + shard; }
  int shard_of(int local) const {
    return local < first || local >= first + shards ? -1 : local - first;
  }
};
InterNodeGroup make_inter_node_group(const NodeLayout& layout, Hierarchy hierarchy);

}  // namespace slimpi::comm
