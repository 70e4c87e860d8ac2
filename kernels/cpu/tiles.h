// SPDX-License-Identifier: BSD-3-Clause
// The innermost loops of the host, each one pass over at most a tile, which stays in L1. They are
// plain loops over the arithmetic of kernels/math that the compiler vectorizes. Their unnamed
// namespace gives each instruction set its own copy. Included by loops.cpp alone.
#pragma once
#include "kernels/kernels.h"
#include "kernels/math/feedback.h"
#include "kernels/math/philox.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels {
namespace {

// The elements of a tile: a multiple of 8, so that tiles end where groups of 8 levels end, and long
// enough for a bucket of the default length.
constexpr std::size_t kTile = 2048;

// The elements that are processed between two prefetches.
constexpr std::size_t kStep = 512;

#define SLIMPI_RESTRICT __restrict__
// Tells the compiler that no iteration of the next loop writes an element that another iteration
// reads, even where inputs and outputs are the same array.
#define SLIMPI_ELEMENTWISE _Pragma("GCC ivdep")

// Prefetches memory into L2, since L1 has room only for the current tile. The address may be
// invalid.
SLIMPI_HD void prefetch(const void* data, std::size_t bytes) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char*)data + i, 0, 2);
}

// to = a + b; `to` may be a or b.
void add_tiles(const float* a, const float* b, std::size_t n, float* to) {
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = add(a[i], b[i]);
}

// to = (a + b) + c; `to` may be a, b or c.
void add_tiles(const float* a, const float* b, const float* c, std::size_t n, float* to) {
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = canonical((a[i] + b[i]) + c[i]);
}

void fill_nan(float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = nan_value();
}

// to = a + 0, which turns -0 into +0 and any NaN into kNanBits; `to` may be a.
void add_zero(const float* a, std::size_t n, float* to) {
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = add(a[i], 0.0f);
}

// residual = a + the clamped residual.
void add_residual(const float* SLIMPI_RESTRICT a, float limit, std::size_t n,
                  float* SLIMPI_RESTRICT residual) {
  for (std::size_t i = 0; i < n; ++i) residual[i] = a[i] + clamp_residual(residual[i], limit);
}

// Includes the n floats at `from` in `extremes`.
void include_tile(Extremes& extremes, const float* from, std::size_t n) {
  Extremes found = no_extremes();
  for (std::size_t i = 0; i < n; ++i) include(found, bits_of(from[i]));
  include(extremes, found);
}

// Includes the floats like include_tile(), and prefetches the first half of the n floats at
// `upcoming`.
void include_tile_and_prefetch(Extremes& extremes, const float* from, std::size_t n,
                               const float* upcoming) {
  Extremes found = no_extremes();
  for (std::size_t i = 0; i < n; i += kStep) {
    const std::size_t step = n - i < kStep ? n - i : kStep;
    prefetch(upcoming + i / 2, step * sizeof(float) / 2);
    for (std::size_t j = i; j < i + step; ++j) include(found, bits_of(from[j]));
  }
  include(extremes, found);
}

// to = a + b, and collects the extremes of the sums. A NaN keeps its bits, since it makes the
// encoder write a non-finite bucket anyway. `to` may be a or b.
void include_sum(Extremes& extremes, const float* a, const float* b, std::size_t n, float* to) {
  Extremes found = no_extremes();
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    include(found, bits_of(sum));
    to[i] = sum;
  }
  include(extremes, found);
}
// to = a + the clamped residual, and collects the extremes of the sums. `to` may be `a`.
void include_residual(Extremes& extremes, const float* a, const float* residual, float limit,
                      std::size_t n, float* to) {
  Extremes found = no_extremes();
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = a[i] + clamp_residual(residual[i], limit);
    include(found, bits_of(sum));
    to[i] = sum;
  }
  include(extremes, found);
}

template <typename Scaling, typename Level>
void to_nearest_levels(const Scaling& shared_scale, const float* SLIMPI_RESTRICT from,
                       std::size_t n, Level* SLIMPI_RESTRICT levels) {
  const Scaling scale = shared_scale;
  for (std::size_t i = 0; i < n; ++i) levels[i] = (Level)nearest_level(scale, from[i]);
}

// Rounds to levels like the overload above, and also writes the decoded values to `decoded`, which
// may be `from`.
template <typename Scaling, typename Level>
void to_nearest_levels(const Scaling& shared_scale, const float* from, std::size_t n,
                       Level* SLIMPI_RESTRICT levels, float* decoded) {
  const Scaling scale = shared_scale;
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) {
    const auto level = (Level)nearest_level(scale, from[i]);
    levels[i] = level;
    decoded[i] = level_value(scale, level);
  }
}

template <typename Scaling, typename Level>
void to_stochastic_levels(const Scaling& shared_scale, const float* SLIMPI_RESTRICT from,
                          const std::uint32_t* SLIMPI_RESTRICT words, std::size_t n,
                          Level* SLIMPI_RESTRICT levels) {
  const Scaling scale = shared_scale;
  for (std::size_t i = 0; i < n; ++i)
    levels[i] = (Level)stochastic_level(scale, from[i], uniform(words[i]));
}

// to = what the levels decode to.
template <typename Scaling, typename Level>
void from_levels(const Scaling& shared_scale, const Level* SLIMPI_RESTRICT levels, std::size_t n,
                 float* SLIMPI_RESTRICT to) {
  const Scaling scale = shared_scale;
  for (std::size_t i = 0; i < n; ++i) to[i] = level_value(scale, levels[i]);
}

// to = sum + what the levels decode to; `to` may be `sum`.
template <typename Scaling, typename Level>
void add_levels(const Scaling& shared_scale, const Level* SLIMPI_RESTRICT levels, std::size_t n,
                const float* sum, float* to) {
  const Scaling scale = shared_scale;
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = add(sum[i], level_value(scale, levels[i]));
}

// Adds like add_levels(), and collects the extremes of the sums. A sum that is NaN keeps its bits,
// where add_levels() would store kNanBits.
template <typename Scaling, typename Level>
void include_sum(Extremes& extremes, const Scaling& shared_scale,
                 const Level* SLIMPI_RESTRICT levels, std::size_t n, const float* sum, float* to) {
  const Scaling scale = shared_scale;
  Extremes found = no_extremes();
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) {
    const float whole = sum[i] + level_value(scale, levels[i]);
    include(found, bits_of(whole));
    to[i] = whole;
  }
  include(extremes, found);
}

// decoded = the values that the levels stand for, and residual = from - decoded. `from` may be
// `residual` or `decoded`. The overload without `decoded` writes only the residual.
template <typename Scaling, typename Level>
void subtract_levels(const Scaling& shared_scale, const Level* SLIMPI_RESTRICT levels,
                     const float* from, std::size_t n, float* residual, float* decoded) {
  const Scaling scale = shared_scale;
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) {
    const float value = level_value(scale, levels[i]);
    residual[i] = from[i] - value;
    decoded[i] = value;
  }
}
template <typename Scaling, typename Level>
void subtract_levels(const Scaling& shared_scale, const Level* SLIMPI_RESTRICT levels,
                     const float* from, std::size_t n, float* residual) {
  const Scaling scale = shared_scale;
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) residual[i] = from[i] - level_value(scale, levels[i]);
}

// Returns how many elements the tile has that begins at element i of n.
SLIMPI_HD std::size_t tile_at(std::size_t i, std::size_t n) {
  return n - i < kTile ? n - i : kTile;
}

}  // namespace
}  // namespace slimpi::kernels
