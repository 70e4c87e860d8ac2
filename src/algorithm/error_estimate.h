// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the error estimate of SLIMPI_MAX_ERROR, without communication: facts about a
// tile, the draw of tiles, and the error of a codec on the drawn tiles. `memory` is for lists:
// those that are returned, and those that end with the function.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace slimpi::algorithm {

// Facts about the sums of one node in a tile. The facts of all nodes are added.
struct TileFacts {
  double energy = 0;  // sum of squares
  double spread = 0;  // sum over its buckets of (max - min)^2 * elements
  double peak = 0;    // largest absolute value
};
// The buckets have `bucket` elements; the first one starts at `values`.
TileFacts facts_of(const float* values, std::uint64_t count, std::uint64_t bucket);

// One drawn tile. `weight` is the number of tiles that it represents. A `certain` tile was chosen
// without a random draw and represents itself.
struct Drawn {
  std::uint64_t tile;
  double weight;
  std::uint64_t certain;
};
// Draws about `wanted` tiles, at least 4. The probability of a tile is proportional to its share of
// all energy and spread. If there are no more tiles than wanted, all are taken. A tile whose share
// is larger than that of one draw is always taken. The facts must be finite, and `start` must be in
// [0, 1). The result is ordered by tile, and each tile occurs at most once.
std::pmr::vector<Drawn> draw_tiles(
    std::span<const TileFacts> facts, std::uint64_t wanted, double start,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// A drawn tile with the values of every member of its inter-node group, the member that owns it,
// and the ranks that select the random streams of stochastic rounding. If the bucket is longer than
// the tile, `extra` is 2: the minimum and the maximum of the bucket follow the values of each
// member, and the tile is encoded as one bucket.
struct Sample {
  explicit Sample(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : values(memory), ranks(memory) {}
  std::uint64_t length() const { return count + std::uint64_t(extra); }
  const float* of(std::size_t member) const { return values.data() + member * length(); }

  double weight = 1;
  bool certain = false;
  std::uint64_t first = 0, count = 0;  // in the vector
  int owner = 0, extra = 0;
  std::pmr::vector<float> values;  // length() of each member, one member after the other
  std::pmr::vector<int> ranks;     // by member
};

// The result of a simulated reduce-scatter and all-gather of one tile with one codec. `error` is
// the squared L2 error, `total` the squared norm of the exact sum. `triangle` is the square of the
// sum of the members' error norms. `caps` is the square of the sum of the members' largest errors,
// times the elements (error_bound.h).
struct Trial {
  double error = 0, total = 0, triangle = 0, caps = 0;
};
Trial try_codec(const kernels::Format& format, const kernels::RandomStream& draw,
                const Sample& sample,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// `relative` is the relative L2 error of the trials. `cautious` is the bound that the check is
// expected to find, plus a margin for the random draw. Both are infinite if there is an error but
// the sum is zero. `tiles` is the number of tiles of the check.
struct Estimate {
  double relative = 0, cautious = 0;
};
Estimate estimate(std::span<const Sample> samples, std::span<const Trial> trials,
                  std::uint64_t tiles);

}  // namespace slimpi::algorithm
