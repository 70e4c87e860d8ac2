// SPDX-License-Identifier: BSD-3-Clause
// Reads and adds the inputs of a sum, which are quantized segments or floats, tile by tile.
#pragma once
#include "kernels/cuda/bucket.h"

namespace slimpi::kernels::cuda {

struct Source {
  const float* exact;           // the tile's floats; null if it is encoded
  const std::uint32_t* levels;  // the tile's packed levels
  SharedScale scale;
  bool near_overflow;
  double slack;  // slack_of() the bucket, if it is near-overflow
};

constexpr int kMaxSources = kMaxAddends + 1;
struct SharedSources {
  Source source[kMaxSources];
};

// Prefetches the encoded tiles of all sources. A tile is only a few bytes, so without the prefetch
// the threads would wait for memory once per source.
template <typename Team>
SLIMPI_DEVICE void prefetch_sources(const SumArguments& a, const Tile& tile) {
  constexpr std::uint32_t kLine = 32;  // words
  const std::uint32_t words = words_of(a.payload, tile.count);
  const std::uint32_t lines = (words + kLine - 1) / kLine;
  const auto all = lines * (std::uint32_t)a.addend_count;
  for (std::uint32_t i = (std::uint32_t)Team::thread(); i < all; i += Team::threads) {
    const std::byte* const encoded = a.addends[i / lines].encoded;
    if (encoded != nullptr) prefetch(levels_in(a.payload, tile, encoded) + i % lines * kLine);
  }
}

// Opens all sources of all teams of the block; each thread opens one source of one team.
template <typename Team>
SLIMPI_DEVICE void open_sources(const SumArguments& a, SharedSources (&all)[Team::teams]) {
  static_assert(Team::teams * kMaxSources <= kThreads);
  const int team = (int)threadIdx.x / a.addend_count, s = (int)threadIdx.x % a.addend_count;
  if (team < Team::teams) {
    const Tile tile = tile_of<Team>(a.payload, team);
    Source& source = all[team].source[s];
    source.exact = nullptr;
    source.near_overflow = false;
    const std::byte* const encoded = a.addends[s].encoded;
    if (encoded == nullptr) {
      source.exact = a.addends[s].exact + first_of(a.payload, tile);
    } else {
      const Header header = read_header(header_in(a.payload, tile, encoded));
      source.levels = levels_in(a.payload, tile, encoded);
      open_scale(header, a.payload.format.bits, a.payload.format.stochastic, source.scale);
      source.near_overflow = is_near_overflow(header);
      if (source.near_overflow)
        source.slack = slack_of(header, a.payload.format.bits, a.payload.format.stochastic);
    }
  }
  __syncthreads();
}

// Returns the value that one source has for element i of the tile.
SLIMPI_DEVICE float element_of(const Source& source, int bits, std::uint32_t i) {
  if (source.exact != nullptr) return source.exact[i];
  if (source.scale.nonfinite) return nan_value();
  const std::uint16_t level = level_at(source.levels, bits, i);
  return source.scale.extended ? extended_value(source.scale, level)
                               : level_value(source.scale.scale_float, level);
}

// Returns element i summed over all sources in double. Called where the float sum is not finite and
// a source has a near-overflow bucket (values above 2^100).
SLIMPI_DEVICE_RARE float near_overflow_sum(const SharedSources& shared, int sources, int bits,
                                           std::uint32_t i) {
  double exact = 0, slack = 0;
  SLIMPI_ROLLED
  for (int s = 0; s < sources; ++s) {
    const Source& source = shared.source[s];
    const double one = (double)element_of(source, bits, i);
    exact = s == 0 ? one : exact + one;
    if (source.near_overflow) slack += source.slack;
  }
  return saturated_sum(exact, slack);
}

// Adds read(j) to sums[j], or sets sums[j] to it if `first`. A sum that is NaN may have any NaN's
// bits.
template <typename Team, typename Read>
SLIMPI_DEVICE void add_values(bool first, float (&sums)[Team::values], const Read& read) {
  if (first) {
    SLIMPI_UNROLL
    for (int j = 0; j < Team::values; ++j) sums[j] = read(j);
  } else {
    SLIMPI_UNROLL
    for (int j = 0; j < Team::values; ++j) sums[j] = sums[j] + read(j);
  }
}

// Adds the sources of the tile in their order. Sums beyond the end of the tile are arbitrary.
template <typename Team>
SLIMPI_DEVICE void sum_values(const SumArguments& a, const Tile& tile, const SharedSources& shared,
                              float (&sums)[Team::values]) {
  const int bits = a.payload.format.bits;
  bool any_near_overflow = false;
  SLIMPI_ROLLED
  for (int s = 0; s < a.addend_count; ++s) {
    const Source& source = shared.source[s];
    any_near_overflow = any_near_overflow || source.near_overflow;
    // The pointers come from the arguments of the kernel, which nvcc knows to point to global
    // memory. Pointers that are read from `source`, in shared memory, could point anywhere.
    const std::byte* const encoded = a.addends[s].encoded;
    if (encoded == nullptr) {
      float exact[Team::values];
      load_values<Team>(tile, a.addends[s].exact + first_of(a.payload, tile), exact);
      add_values<Team>(s == 0, sums, [&](int j) { return exact[j]; });
      continue;
    }
    const Levels<Team> levels = load_levels<Team>(tile, levels_in(a.payload, tile, encoded), bits);
    if (source.scale.nonfinite) {
      add_values<Team>(s == 0, sums, [](int) { return nan_value(); });
    } else if (source.scale.extended) {
      add_values<Team>(s == 0, sums,
                       [&](int j) { return extended_value(source.scale, levels.at(j)); });
    } else {
      const Scale<float> scale = source.scale.scale_float;
      add_values<Team>(s == 0, sums, [&](int j) { return level_value(scale, levels.at(j)); });
    }
  }
  if (a.addend_count > 1) SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) sums[j] = canonical(sums[j]);
  if (!any_near_overflow) return;
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    const auto i = (std::uint32_t)(Team::thread() + j * Team::threads);
    if (i < tile.count && !is_finite(sums[j]))
      sums[j] = near_overflow_sum(shared, a.addend_count, bits, i);
  }
}

}  // namespace slimpi::kernels::cuda
