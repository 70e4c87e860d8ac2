// SPDX-License-Identifier: BSD-3-Clause
// Sums under SLIMPI_MAX_ERROR, whose relative L2 error must stay within the user's bound. The
// exchange between nodes begins with the codec that was good enough for the last sum of this size
// (codec_choice.h). Afterwards all ranks check the error together. If it exceeds the bound, they
// repeat the exchange with a finer codec; the last resort is float32, which needs no check.
//
// For the check, every rank compares the values that it encoded with their decoded values, tile by
// tile. As a sender it encoded the sums of its node, as an owner the sums of its chunk. Then the
// ranks sum the numbers that error_energy_bound() needs. The rounding of float additions is bounded
// by the norms of the addends.
//
// The check costs each rank one more encoding and decoding of its shard, and at most 160 KiB of
// messages.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>

#include "comm/call.h"
#include "comm/verdict.h"

namespace slimpi::algorithm {

comm::Verdict run_bounded(comm::Call& call);

// Reserves the memory that run_bounded() needs, which includes that of run_hierarchical() with any
// of the codecs.
Status reserve_bounded(const comm::Call& call);

// The arithmetic of the check (error_bound.cpp): an upper bound of the L2 norm of a sum's error.
// Each rank knows its own rounding errors exactly, and the error of the sum is the sum of those
// errors. The smaller of two bounds is used:
//   triangle  The norm of a sum is at most the sum of the norms. This bound always holds. It is up
//             to sqrt(2 * nodes) times too large if errors of different ranks are independent.
//   sampled   The ranks add their errors at elements that are drawn at random. The empirical
//             Bernstein inequality (Maurer, Pontil, 2009) bounds the mean square by this sample
//             and the largest possible error of an element. For any data, the bound fails with a
//             probability below kMissProbability over the random draw.
constexpr int kPlaces = 8;  // elements drawn per tile, uniformly, with replacement
constexpr double kMissProbability = 1e-6;  // of the sampled bound of a call being exceeded

// The errors of all ranks in one tile (values whose error is bounded together).
struct ErrorTile {
  std::uint64_t count = 0;  // the number of elements
  double norm = 0;          // the sum of the ranks' L2 norms of their errors
  double largest = 0;       // the sum of the ranks' largest absolute errors
  double at[kPlaces] = {};  // the sum of the ranks' errors at each drawn element
};

// Returns an upper bound of the squared L2 norm of the error. The bound is infinite if that of some
// tile is. Temporary lists are allocated from `memory`.
double error_energy_bound(std::span<const ErrorTile> tiles,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

// Returns the elements per tile of the check for a vector of `count` elements. A short vector has
// short tiles, so that enough elements are drawn. A long vector has longer ones, which limits their
// number and with it the size of the message.
std::uint64_t check_tile_elements(std::uint64_t count);

// Returns which element of a tile of `count` elements is drawn as number `place`. `stream`
// identifies the call.
std::uint64_t place_in(std::uint64_t stream, std::uint64_t tile, int place, std::uint64_t count);

}  // namespace slimpi::algorithm
