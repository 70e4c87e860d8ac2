// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic behind the check of SLIMPI_MAX_ERROR: an upper bound of the L2 norm of a sum's
// error, from what the ranks know of it. A rank knows its own rounding errors exactly; the error of
// the sum is the sum of the ranks' errors. Two bounds hold, and the smaller one counts:
//   triangle  the norm of a sum is at most the sum of the norms. Always true; up to
//             sqrt(2 * nodes) times too large, where errors of different ranks are independent.
//   sampled   the ranks add their errors at places that are drawn at random, and the empirical
//             Bernstein inequality (Maurer, Pontil, 2009) bounds the mean square from the sample
//             and from the largest possible error of an element. Wrong with a probability below
//             kMissProbability, over the draw of the places, whatever the data.
#pragma once
#include <cstdint>
#include <span>

namespace slimpi::algorithm {

constexpr int kPlaces = 8;                 // drawn in each tile, each uniformly, with replacement
constexpr double kMissProbability = 1e-6;  // of the sampled bound in one call

// What all ranks together know of the error in one tile.
struct ErrorTile {
  std::uint64_t count = 0;  // elements
  double norm = 0;          // sum over the ranks of the L2 norm of their errors
  double largest = 0;       // sum over the ranks of their largest absolute error
  double at[kPlaces] = {};  // sum over the ranks of their errors at the places
};

// An upper bound of the squared L2 norm of the error; infinite where nothing is known.
double error_energy_bound(std::span<const ErrorTile> tiles);

// About what error_energy_bound gives for `tiles` tiles that are alike, with this squared error;
// `triangle` is the sum of their squared norms, `caps` that of count * largest^2.
double expected_energy_bound(double energy, double triangle, double caps, std::uint64_t tiles);

// Elements of a tile of the check in a buffer of `count`: short buffers need many places, long ones
// no more than a bounded message holds.
std::uint64_t check_tile_elements(std::uint64_t count);

// Place `place` of a tile of `count` elements; `stream` names the draw.
std::uint64_t place_in(std::uint64_t stream, std::uint64_t tile, int place, std::uint64_t count);

}  // namespace slimpi::algorithm
