// SPDX-License-Identifier: BSD-3-Clause
// The tiles of a buffer that the estimate of SLIMPI_MAX_ERROR works with: which there are, who owns
// them, and what a rank tells of its own.
#pragma once
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/budget_trial.h"

namespace slimpi::algorithm {

// One bucket, or several short ones, or a part of a long one. Buckets and chunks begin at tiles'
// beginnings, so a tile has one owner and, where buckets are longer, one bucket.
struct BudgetTile {
  int rail, owner;
  Range part;    // of the buffer
  Range bucket;  // the bucket that it lies in, where buckets are longer
};

class BudgetTiles {
 public:
  BudgetTiles(const Call& call, const Rails& rails, Range slice);

  const std::vector<BudgetTile>& all() const { return tiles_; }
  std::uint64_t length() const { return length_; }
  bool split() const { return split_; }     // buckets are longer than tiles
  int members() const { return members_; }  // of a rail

  // The rank that sends and owns a tile for a member of its rail.
  int rank_of(const BudgetTile& tile, int member) const;

  // What this rank knows of the tiles of its rail; `values` is its slice.
  std::vector<TileFacts> own_facts(const float* values);

  // The floats of a tile as a Sample has them.
  std::vector<float> floats_of(const BudgetTile& tile, const float* values);

 private:
  struct Extremes {
    float low, high;
  };

  void add_tiles(const Call& call, int rail);
  Extremes extremes_of(const Range& bucket, const float* values);

  const Layout& layout_;
  const Rails& rails_;
  const Range slice_;
  const std::uint64_t bucket_, length_;
  const bool split_;
  const int members_;
  std::vector<BudgetTile> tiles_;
  Range last_bucket_;  // whose extremes are known
  Extremes last_extremes_{};
};

}  // namespace slimpi::algorithm
