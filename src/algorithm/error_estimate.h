// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic behind SLIMPI_MAX_ERROR, without messages: what is known of a tile, which tiles to
// look at, and what error a codec makes on them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace slimpi::algorithm {

// What one node knows of its sums in a tile; nodes add theirs up.
struct TileFacts {
  double energy = 0;  // sum of squares
  double spread = 0;  // sum of its buckets' (max - min)^2 times their elements
  double peak = 0;    // largest absolute value
};
// `bucket` elements share a range, counted from `values`.
TileFacts facts_of(const float* values, std::uint64_t count, std::uint64_t bucket);

// One tile to look at, and how many it stands for; `certain` ones for themselves, whatever chance
// does.
struct Drawn {
  std::uint64_t tile;
  double weight;
  std::uint64_t certain;
};
// Draws about `wanted` tiles, at least 4, each as likely as its share of all energy and spread: all
// of them where there are no more, and for certain those whose share is larger than one draw's.
// Facts are finite, `start` is in [0, 1). Ordered by tile, each tile at most once.
std::vector<Drawn> draw_tiles(std::span<const TileFacts> facts, std::uint64_t wanted, double start);

// A drawn tile with every member's values, the member that owns it, and the ranks for the draws of
// stochastic rounding. Where a bucket is longer than the tile, each member's values end with the
// least and the largest of its bucket, `extra` = 2 of them, and the tile is coded as one bucket.
struct Sample {
  double weight = 1;
  bool certain = false;
  std::uint64_t first = 0, count = 0;  // in the program's buffer
  int owner = 0, extra = 0;
  std::vector<std::vector<float>> values;
  std::vector<int> ranks;
};

// What the reduce-scatter and all-gather with this codec do to a tile: the squared error, the
// squared exact sum; and of the members' errors the sum of the norms, squared, and of the largest,
// squared, times the elements (error_bound.h).
struct Trial {
  double error = 0, total = 0, triangle = 0, caps = 0;
};
Trial try_codec(const kernels::Format& format, const kernels::RandomStream& draw,
                const Sample& sample);

// The relative L2 error that trials show, and what the check will say of it, with what chance may
// have hidden. Both are infinite where there is an error but nothing to relate it to. `tiles` is
// how many the check has.
struct Estimate {
  double relative = 0, cautious = 0;
};
Estimate estimate(std::span<const Sample> samples, std::span<const Trial> trials,
                  std::uint64_t tiles);

}  // namespace slimpi::algorithm
