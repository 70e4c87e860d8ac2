// SPDX-License-Identifier: BSD-3-Clause
// The innermost loops: one pass over at most kTile elements that stay in the first cache. Plain
// loops over the shared arithmetic, for the compiler to vectorize. Everything is in an unnamed
// namespace, so that each instruction set keeps its own copy. Included by loops.cpp alone.
#pragma once
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/math/halves.h"
#include "kernels/math/pack.h"
#include "kernels/math/philox.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels {
namespace {

constexpr std::size_t kTile = 1024;  // a multiple of 8, so that tiles end where groups end

#define SLIMPI_RESTRICT __restrict__

// to = a + b.
void add_tiles(const float* SLIMPI_RESTRICT a, const float* SLIMPI_RESTRICT b, std::size_t n,
               float* SLIMPI_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = add(a[i], b[i]);
}

// to += from.
void accumulate(const float* SLIMPI_RESTRICT from, std::size_t n, float* SLIMPI_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = add(to[i], from[i]);
}

void include_tile(Extremes& extremes, const float* SLIMPI_RESTRICT from, std::size_t n) {
  Extremes found = no_extremes();
  for (std::size_t i = 0; i < n; ++i) include(found, bits_of(from[i]));
  include(extremes, found);
}

template <typename Real>
void to_nearest_levels(const Grid<Real>& shared_grid, const float* SLIMPI_RESTRICT from,
                       std::size_t n, std::uint8_t* SLIMPI_RESTRICT levels) {
  const Grid<Real> grid = shared_grid;
  for (std::size_t i = 0; i < n; ++i) levels[i] = (std::uint8_t)nearest_level(grid, from[i]);
}

template <typename Real>
void to_stochastic_levels(const Grid<Real>& shared_grid, const float* SLIMPI_RESTRICT from,
                          const std::uint32_t* SLIMPI_RESTRICT words, std::size_t n,
                          std::uint8_t* SLIMPI_RESTRICT levels) {
  const Grid<Real> grid = shared_grid;
  for (std::size_t i = 0; i < n; ++i)
    levels[i] = (std::uint8_t)stochastic_level(grid, from[i], uniform(words[i]));
}

template <typename Real>
void from_levels(const Grid<Real>& shared_grid, const std::uint8_t* SLIMPI_RESTRICT levels,
                 std::size_t n, float* SLIMPI_RESTRICT to) {
  const Grid<Real> grid = shared_grid;
  for (std::size_t i = 0; i < n; ++i) to[i] = level_value(grid, levels[i]);
}

template <typename Real>
void accumulate_levels(const Grid<Real>& shared_grid, const std::uint8_t* SLIMPI_RESTRICT levels,
                       std::size_t n, float* SLIMPI_RESTRICT to) {
  const Grid<Real> grid = shared_grid;
  for (std::size_t i = 0; i < n; ++i) to[i] = add(to[i], level_value(grid, levels[i]));
}

// Numbers first .. first + n - 1 of the stream into words[0 .. n - 1]. `words` has room for n + 6.
// Returns where number `first` lies in it.
const std::uint32_t* draw_words(const Draw& shared_draw, std::uint64_t first, std::size_t n,
                                std::uint32_t* SLIMPI_RESTRICT words) {
  const Draw draw = shared_draw;
  const std::uint64_t block = first / 4;
  const std::size_t skip = first % 4, blocks = (skip + n + 3) / 4;
  for (std::size_t i = 0; i < blocks; ++i) {
    const Block drawn = draw_block(draw, block + i);
    for (int w = 0; w < 4; ++w) words[4 * i + w] = drawn.word[w];
  }
  return words + skip;
}

// Packs the n levels of a tile into `out`, where `room` bytes are left until the end of the bucket.
// The last tile of a bucket fills all of them.
template <int bits>
void pack_tile(std::uint8_t* SLIMPI_RESTRICT levels, std::size_t n, bool last,
               std::byte* SLIMPI_RESTRICT out, std::size_t room) {
  const std::size_t groups = (n + 7) / 8;
  for (std::size_t i = n; i < groups * 8; ++i) levels[i] = 0;
  std::uint64_t words[kTile / 8];
  std::memcpy(words, levels, groups * 8);
  for (std::size_t g = 0; g < groups; ++g) words[g] = pack_group<bits>(words[g]);
  // A whole word is stored for each group; the next one covers what is too much.
  std::size_t g = 0;
  for (; g < groups && g * bits + 8 <= room; ++g) std::memcpy(out + g * bits, &words[g], 8);
  for (; g < groups; ++g)
    std::memcpy(out + g * bits, &words[g], room - g * bits < bits ? room - g * bits : bits);
  if (last && groups * bits < room) std::memset(out + groups * bits, 0, room - groups * bits);
}

// Unpacks n levels from `in`, which holds `room` bytes. `levels` has room for a whole group more.
template <int bits>
void unpack_tile(const std::byte* SLIMPI_RESTRICT in, std::size_t room, std::size_t n,
                 std::uint8_t* SLIMPI_RESTRICT levels) {
  const std::size_t groups = (n + 7) / 8;
  std::uint64_t words[kTile / 8];
  std::size_t g = 0;
  for (; g < groups && g * bits + 8 <= room; ++g) std::memcpy(&words[g], in + g * bits, 8);
  for (; g < groups; ++g) {
    words[g] = 0;
    std::memcpy(&words[g], in + g * bits, room - g * bits < bits ? room - g * bits : bits);
  }
  for (g = 0; g < groups; ++g) words[g] = spread_group<bits>(words[g]);
  std::memcpy(levels, words, groups * 8);
}

}  // namespace
}  // namespace slimpi::kernels
