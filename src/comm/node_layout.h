// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator share a node, and who exchanges what between nodes.
#pragma once
#include <cstdint>
#include <vector>

#include "base/option_types.h"
#include "base/status.h"
#include "mpi/api.h"

namespace slimpi::comm {

// Consecutive elements of a buffer.
struct Range {
  std::uint64_t first = 0, count = 0;
};

// Part `index` of `count` elements divided among `parts`: whole blocks of `align` elements, the
// first parts one block longer; the last block may be short. align >= 1.
Range chunk_of(std::uint64_t count, int parts, int index, std::uint64_t align);

struct NodeLayout {
  int rank = 0, size = 1;                  // in the communicator
  std::vector<int> node_of;                // node of each rank; nodes count in order of lowest rank
  std::vector<std::vector<int>> ranks_of;  // ranks of each node, ascending
  std::vector<int> leaders;                // local rank of each node's leader

  int nodes() const { return int(ranks_of.size()); }
  int node() const { return node_of[std::size_t(rank)]; }
  const std::vector<int>& node_ranks() const { return ranks_of[std::size_t(node())]; }
  int local_rank() const { return local_rank_of(rank); }
  int local_rank_of(int other) const;  // position of a rank on its node
};

// Finds the nodes: with ranks_per_node = k every k consecutive ranks of MPI_COMM_WORLD are one (of
// `comm` where there is no world), otherwise MPI_Comm_split_type decides. Collective over comm.
Status find_node_layout(const mpi::Api& api, MPI_Comm comm, std::uint64_t ranks_per_node,
                        NodeLayout& layout);

// A plan of who exchanges between nodes. The vector is cut into `inter-node groups` slices; local
// rank l of every node owns slice l and talks to its ranks of the inter-node group. The other ranks
// own nothing.
//   flat      one inter-node group of all ranks, no work inside a node
//   leader    one inter-node group of one rank a node, its leader
//   sharded   as many inter-node groups as the smallest node has ranks
struct InterNodeGroup {
  bool flat = false, leader = false;
  int shards = 1;
  int shard_index = -1;    // this rank's, or -1
  std::vector<int> peers;  // ranks on this rank's inter-node group, one a node in the nodes' order
  int index = 0;           // of this rank in peers
  int first = 0;           // local rank that owns slice 0 on this rank's node

  // The local rank that owns a slice here, and the slice of a local rank, or -1.
  int owner(int shard) const { return first + shard; }
  int shard_of(int local) const {
    return local < first || local >= first + shards ? -1 : local - first;
  }
};
InterNodeGroup make_inter_node_group(const NodeLayout& layout, Hierarchy hierarchy);

// The slice that any rank owns, or -1; and the rank that owns a slice on any node. Not for flat
// inter-node groups, which have one slice and no nodes.
int shard_of_rank(const NodeLayout& layout, const InterNodeGroup& group, int rank);
int owner_on(const NodeLayout& layout, const InterNodeGroup& group, int node, int shard);

}  // namespace slimpi::comm
