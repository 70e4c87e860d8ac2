// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the check of SLIMPI_MAX_ERROR: an upper bound of the L2 norm of the error of a
// sum. A rank knows its own rounding errors exactly, and the error of the sum is the sum of the
// errors of the ranks. There are two bounds, and the smaller one is used:
//   triangle  The norm of a sum is at most the sum of the norms. It always holds. It is up to
//             sqrt(2 * nodes) times too large if the errors of different ranks are independent.
//   sampled   The ranks add their errors at elements that are drawn at random. The empirical
//             Bernstein inequality (Maurer, Pontil, 2009) bounds the mean square, from the sample
//             and from the largest possible error of an element. The bound fails with a
//             probability below kMissProbability over the random draw, for any data.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>

namespace slimpi::algorithm {

constexpr int kPlaces = 8;  // elements drawn in each tile, uniformly, with replacement
constexpr double kMissProbability = 1e-6;  // of the sampled bound in one call

// The error in one tile: sums over all ranks.
struct ErrorTile {
  std::uint64_t count = 0;  // elements
  double norm = 0;          // sum over the ranks of the L2 norm of their errors
  double largest = 0;       // sum over the ranks of their largest absolute error
  double at[kPlaces] = {};  // sum over the ranks of their errors at the drawn elements
};

// An upper bound of the squared L2 norm of the error; infinite if a tile has no finite bound.
// `memory` is for lists that end with the function.
double error_energy_bound(std::span<const ErrorTile> tiles,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// Elements in one tile of the check, for a vector of `count` elements. Short vectors need many
// drawn elements; for long ones the number of tiles is limited, so that the message has a bounded
// size.
std::uint64_t check_tile_elements(std::uint64_t count);

// The drawn element with number `place` in a tile of `count` elements; `stream` identifies the
// call.
std::uint64_t place_in(std::uint64_t stream, std::uint64_t tile, int place, std::uint64_t count);

}  // namespace slimpi::algorithm
