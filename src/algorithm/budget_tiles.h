// SPDX-License-Identifier: BSD-3-Clause
// The tiles of a buffer that the estimate of SLIMPI_MAX_ERROR works with: which there are, who owns
// them, and what a rank tells of its own.
#pragma once
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/error_estimate.h"

namespace slimpi::algorithm {

// One bucket, or several short ones, or a part of a long one. Buckets and chunks begin at tiles'
// beginnings, so a tile has one owner and, where buckets are longer, one bucket.
struct BudgetTile {
  int shard_index, owner;
  comm::Range part;    // of the buffer
  comm::Range bucket;  // the bucket that it lies in, where buckets are longer
};

class BudgetTiles {
 public:
  BudgetTiles(const comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard);

  const std::vector<BudgetTile>& all() const { return tiles_; }
  std::uint64_t length() const { return length_; }
  bool split() const { return split_; }           // buckets are longer than tiles
  int group_size() const { return group_size_; }  // of a inter-node group

  // The rank that sends and owns a tile for a member of its inter-node group.
  int rank_of(const BudgetTile& tile, int member) const;

  // What this rank knows of the tiles of its inter-node group; `values` is its slice.
  std::vector<TileFacts> own_facts(const float* values);

  // The floats of a tile as a Sample has them.
  std::vector<float> floats_of(const BudgetTile& tile, const float* values);

 private:
  struct Extremes {
    float low, high;
  };

  void add_tiles(const comm::Call& call, int shard_index);
  Extremes extremes_of(const comm::Range& bucket, const float* values);

  const comm::NodeLayout& layout_;
  const comm::InterNodeGroup& group_;
  const comm::Range shard_;
  const std::uint64_t bucket_, length_;
  const bool split_;
  const int group_size_;
  std::vector<BudgetTile> tiles_;
  comm::Range last_bucket_;  // whose extremes are known
  Extremes last_extremes_{};
};

}  // namespace slimpi::algorithm
