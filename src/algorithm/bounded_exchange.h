// SPDX-License-Identifier: BSD-3-Clause
// Sums whose error the user has bounded (SLIMPI_MAX_ERROR). The exchange between nodes begins with
// the codec whose error was small enough in the last sum of this size (codec_choice.h). Afterwards
// all ranks check together whether the relative L2 error is within the bound; if it is not, they
// repeat the exchange with a finer codec, at the latest with float32, which needs no check.
//
// The check: every rank compares the values that it encoded with the decoded values, tile by tile.
// As a sender it compares the sums of its node, as an owner the sums of its chunk. Then the ranks
// sum the numbers that error_energy_bound() needs. The rounding of float additions is bounded by
// the norms of the addends.
//
// Cost of the check: each rank encodes and decodes its shard once more, and sends at most 160 KiB.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>

#include "comm/call.h"
#include "comm/verdict.h"

namespace slimpi::algorithm {

comm::Verdict run_bounded(comm::Call& call);

// Reserves the memory that run_bounded() needs, in addition to the memory of run_hierarchical()
// with any of the codecs.
Status reserve_bounded(const comm::Call& call);

// The arithmetic of the check (error_bound.cpp): an upper bound of the L2 norm of the error of a
// sum. A rank knows its own rounding errors exactly, and the error of the sum is the sum of the
// errors of the ranks. There are two bounds, and the smaller one is used:
//   triangle  The norm of a sum is at most the sum of the norms. This bound always holds. It is up
//             to sqrt(2 * nodes) times too large if errors of different ranks are independent.
//   sampled   The ranks add their errors at elements that are drawn at random. The empirical
//             Bernstein inequality (Maurer, Pontil, 2009) bounds the mean square, from the sample
//             and from the largest possible error of an element. The bound fails with a
//             probability below kMissProbability over the random draw, for any data.
constexpr int kPlaces = 8;  // elements drawn in each tile, uniformly, with replacement
constexpr double kMissProbability = 1e-6;  // probability: the sampled bound of a call fails

// The error in one tile (values whose error is bounded together), summed over all ranks.
struct ErrorTile {
  std::uint64_t count = 0;  // elements
  double norm = 0;          // sum over the ranks of the L2 norm of their errors
  double largest = 0;       // sum over the ranks of their largest absolute error
  double at[kPlaces] = {};  // sum over the ranks of their errors at the drawn elements
};

// Returns an upper bound of the squared L2 norm of the error; infinite if a tile has no finite
// bound. The function's temporary lists lie in `memory`.
double error_energy_bound(std::span<const ErrorTile> tiles,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// Returns the number of elements in one tile of the check, for a vector of `count` elements. A
// short vector has short tiles, so that many elements are drawn; a long vector has longer ones,
// which limits their number and with it the size of the message.
std::uint64_t check_tile_elements(std::uint64_t count);

// Returns the drawn element with number `place` in a tile of `count` elements; `stream` identifies
// the call.
std::uint64_t place_in(std::uint64_t stream, std::uint64_t tile, int place, std::uint64_t count);

}  // namespace slimpi::algorithm
