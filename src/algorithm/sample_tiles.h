// SPDX-License-Identifier: BSD-3-Clause
// The tiles of a vector in the error estimate of SLIMPI_MAX_ERROR: their positions, their owners,
// and the facts that a rank sends about the tiles of its shard.
#pragma once
#include <memory_resource>
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/error_estimate.h"

namespace slimpi::algorithm {

// A tile is one bucket, several short buckets, or a range of a long bucket. Every chunk starts at
// the start of a tile, so a tile has one owner. If buckets are longer than tiles, every bucket
// starts at the start of a tile, so a tile lies in one bucket.
struct SampleTile {
  int shard_index, owner;  // owner: position in the inter-node group
  comm::Range part;        // of the vector
  comm::Range bucket;      // that the tile lies in, if buckets are longer than tiles
};

// Its lists lie in the scratch memory of the call.
class SampleTiles {
 public:
  SampleTiles(const comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard);

  const std::pmr::vector<SampleTile>& all() const { return tiles_; }
  std::uint64_t length() const { return length_; }
  bool split() const { return split_; }           // buckets are longer than tiles
  int group_size() const { return group_size_; }  // ranks of an inter-node group

  // The rank of the communicator that carries the tile's shard on node `member`; with hierarchy
  // flat, rank `member`.
  int rank_of(const SampleTile& tile, int member) const;

  // The facts about the tiles of this rank's shard, whose node sum is `values`.
  std::pmr::vector<TileFacts> own_facts(const float* values);

  // Appends the floats of a tile of this rank in the layout of Sample::values.
  void append_floats(const SampleTile& tile, const float* values, std::pmr::vector<float>* floats);

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
  std::pmr::vector<SampleTile> tiles_;
  comm::Range last_bucket_;  // whose extremes are in last_extremes_
  Extremes last_extremes_{};
};

}  // namespace slimpi::algorithm
