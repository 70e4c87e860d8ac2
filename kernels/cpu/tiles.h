// SPDX-License-Identifier: BSD-3-Clause
// The innermost loops: one pass over at most a tile of elements that stay in L1. Plain loops over
// the shared arithmetic, for the compiler to vectorize. Everything is in an unnamed namespace, so
// that each instruction set has its own copy. Included by loops.cpp alone.
#pragma once
#include "kernels/kernels.h"
#include "kernels/math/feedback.h"
#include "kernels/math/philox.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels {
namespace {

// A multiple of 8, so that tiles end where groups end; a bucket of the default length is one tile.
constexpr std::size_t kTile = 2048;

// Elements that are processed between two prefetches.
constexpr std::size_t kStep = 512;

#define SLIMPI_RESTRICT __restrict__
// The loop that follows may read and write the same memory, but only the same element of it.
#define SLIMPI_ELEMENTWISE _Pragma("GCC ivdep")

// Prefetches memory into L2: L1 has room only for the current tile. The address may be invalid.
SLIMPI_HD void prefetch(const void* data, std::size_t bytes) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char*)data + i, 0, 2);
}

// to = a + b; `to` may be a or b.
void add_tiles(const float* a, const float* b, std::size_t n, float* to) {
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = add(a[i], b[i]);
}

// to = (a + b) + c; `to` may be any of them.
void add_tiles(const float* a, const float* b, const float* c, std::size_t n, float* to) {
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = canonical((a[i] + b[i]) + c[i]);
}

void fill_nan(float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = nan_value();
}

// to = a + 0; `to` may be a.
void add_zero(const float* a, std::size_t n, float* to) {
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = add(a[i], 0.0f);
}

// residual = a + what is added of the residual.
void add_residual(const float* SLIMPI_RESTRICT a, float limit, std::size_t n,
                  float* SLIMPI_RESTRICT residual) {
  for (std::size_t i = 0; i < n; ++i) residual[i] = a[i] + clamp_residual(residual[i], limit);
}

void include_tile(Extremes& extremes, const float* from, std::size_t n) {
  Extremes found = no_extremes();
  for (std::size_t i = 0; i < n; ++i) include(found, bits_of(from[i]));
  include(extremes, found);
}

// The same; also prefetches the first half of `upcoming`, which has as many elements.
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

// to = a + b, for a bucket: which NaN a sum is does not matter. `to` may be a or b.
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
// The same with what is added of a residual; `to` may be `a`.
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

// The same; also writes their values to `decoded`, which may be `from`.
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

// to = the values of the levels.
template <typename Scaling, typename Level>
void from_levels(const Scaling& shared_scale, const Level* SLIMPI_RESTRICT levels, std::size_t n,
                 float* SLIMPI_RESTRICT to) {
  const Scaling scale = shared_scale;
  for (std::size_t i = 0; i < n; ++i) to[i] = level_value(scale, levels[i]);
}

// to = sum + the values of the levels; `to` may be `sum`.
template <typename Scaling, typename Level>
void add_levels(const Scaling& shared_scale, const Level* SLIMPI_RESTRICT levels, std::size_t n,
                const float* sum, float* to) {
  const Scaling scale = shared_scale;
  SLIMPI_ELEMENTWISE
  for (std::size_t i = 0; i < n; ++i) to[i] = add(sum[i], level_value(scale, levels[i]));
}

// The same for the last addend of a bucket; also updates the extremes.
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

// residual = from - the values of the levels; decoded = these values. `from` may be either.
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

SLIMPI_HD std::size_t tile_at(std::size_t i, std::size_t n) {
  return n - i < kTile ? n - i : kTile;
}

}  // namespace
}  // namespace slimpi::kernels
