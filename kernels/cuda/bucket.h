// SPDX-License-Identifier: BSD-3-Clause
// Encodes tiles of quantized segments. The values stay in registers until they are rounded, so
// memory is read only once.
#pragma once
#include "kernels/cuda/levels.h"
#include "kernels/math/feedback.h"
#include "kernels/math/philox.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels::cuda {

// The scale of a bucket, computed by one thread and shared by the whole team. encode_buckets() and
// open_sources() let neighboring threads compute the scales of several buckets, so that these take
// as long as one.
struct SharedScale {
  bool nonfinite, extended;
  Scale<float> scale_float;
  Scale<double> scale_double;
};

// Computes the scale of a bucket from its header (its minimum and maximum), and sets the flags.
// This code is not inlined, because its divisions are long and its doubles take many registers.
SLIMPI_DEVICE_RARE void open_scale(Header header, int bits, bool stochastic, SharedScale& scale) {
  scale.nonfinite = is_nonfinite(header);
  scale.extended = !scale.nonfinite && is_extended_range(header);
  if (scale.extended)
    scale.scale_double = scale_of<double>(header, bits, stochastic);
  else if (!scale.nonfinite)
    scale.scale_float = scale_of<float>(header, bits, stochastic);
}

SLIMPI_DEVICE_RARE std::int32_t extended_level(const SharedScale& scale, float x, bool stochastic,
                                               float u) {
  return stochastic ? stochastic_level(scale.scale_double, x, u)
                    : nearest_level(scale.scale_double, x);
}
SLIMPI_DEVICE_RARE float extended_value(const SharedScale& scale, std::uint16_t level) {
  return level_value(scale.scale_double, level);
}

SLIMPI_DEVICE Header read_header(const std::uint32_t* at) {
  return {float_of(at[0]), float_of(at[1])};
}
SLIMPI_DEVICE void write_header(const Header& header, std::uint32_t* at) {
  at[0] = bits_of(header.min);
  at[1] = bits_of(header.max);
}

template <typename Team, bool stochastic>
struct EncodeShared {
  // The random words of the tile. Philox computes blocks of four words, and the tile may begin in
  // the middle of a block, so there is room for four more words, which are not used.
  static constexpr std::uint32_t kWords = stochastic ? kElements<Team> + 4 : 1;
  alignas(16) std::uint32_t words[kWords];
  // The levels of the tile, one byte each if they have up to 8 bits. With nearest rounding, wider
  // levels take two bytes each here. With stochastic rounding they are not stored here: each
  // overwrites, in `words`, the random word with which it was rounded.
  alignas(16) std::uint8_t levels[kElements<Team> * (stochastic ? 1 : 2)];
  Extremes partial[kWarpsOfBlock];
  float limit;
  Header header;
  SharedScale scale;
};

// Computes the tile's random words into shared memory, and returns the address of the word of
// element 0.
template <typename Team, typename Shared>
SLIMPI_DEVICE const std::uint32_t* random_words(const RandomStream& random, std::uint64_t first,
                                                std::uint32_t count, Shared& shared) {
  const std::uint64_t number = random.first + first;
  const auto skip = (std::uint32_t)(number % 4);
  const std::uint32_t blocks = (skip + count + 3) / 4;
  for (std::uint32_t b = (std::uint32_t)Team::thread(); b < blocks; b += Team::threads) {
    const Block block = random_block(random, number / 4 + b);
    for (int i = 0; i < 4; ++i) shared.words[4 * b + (std::uint32_t)i] = block.word[i];
  }
  return shared.words + skip;
}

// The outputs that a caller wants besides the encoded bytes. Each pointer refers to the tile's
// first element, or is null if the output is not wanted. x is a value of the tile, and x' the
// decoded value.
struct Wanted {
  float* residual;  // x - x'
  float* decoded;   // x'
};

// Rounds the values of a tile to `levels`, and writes the wanted outputs. `full` means that the
// tile is as long as the team can hold, so no thread has to test where the tile ends. Each output
// has its own loop, so that no loop tests which outputs are wanted.
template <typename Team, bool stochastic, bool full, typename Level>
SLIMPI_DEVICE void round_values(const Scale<float>& scale, const Tile& tile,
                                const float (&values)[Team::values], const std::uint32_t* words,
                                const Wanted& wanted, Level* levels) {
  constexpr int kStep = Team::threads;
  const int first = Team::thread();
  Level* const mine = levels + first;
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    if (!full && !has<Team>(tile, j)) continue;
    if constexpr (stochastic)
      mine[j * kStep] = (Level)(std::uint16_t)stochastic_level(scale, values[j],
                                                               uniform((words + first)[j * kStep]));
    else
      mine[j * kStep] = (Level)(std::uint16_t)nearest_level(scale, values[j]);
  }
  if (wanted.residual != nullptr) {
    SLIMPI_UNROLL
    for (int j = 0; j < Team::values; ++j)
      if (full || has<Team>(tile, j))
        (wanted.residual + first)[j * kStep] = values[j] - level_value(scale, mine[j * kStep]);
  }
  if (wanted.decoded != nullptr) {
    SLIMPI_UNROLL
    for (int j = 0; j < Team::values; ++j)
      if (full || has<Team>(tile, j))
        (wanted.decoded + first)[j * kStep] = level_value(scale, mine[j * kStep]);
  }
}

// Rounds the values like round_values(), but in double, for extended-range and infinite buckets,
// which are rare.
template <typename Team, bool stochastic, typename Level>
SLIMPI_DEVICE void round_extended(const SharedScale& scale, const Tile& tile,
                                  const float (&values)[Team::values], const std::uint32_t* words,
                                  const Wanted& wanted, Level* levels) {
  constexpr int kStep = Team::threads;
  const int first = Team::thread();
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    if (!has<Team>(tile, j)) continue;
    float u = 0;
    if constexpr (stochastic) u = uniform((words + first)[j * kStep]);
    const auto level = (std::uint16_t)extended_level(scale, values[j], stochastic, u);
    (levels + first)[j * kStep] = (Level)level;
    if (wanted.residual == nullptr && wanted.decoded == nullptr) continue;
    const float value = extended_value(scale, level);
    if (wanted.residual != nullptr) (wanted.residual + first)[j * kStep] = values[j] - value;
    if (wanted.decoded != nullptr) (wanted.decoded + first)[j * kStep] = value;
  }
}

// Rounds the values of a tile whose scale is in shared memory, and writes the packed levels to
// `out`. `levels` is shared memory, and may be `words`.
template <typename Team, bool stochastic, typename Level>
SLIMPI_DEVICE void encode_finite(const Payload& payload, const SharedScale& scale, const Tile& tile,
                                 const float (&values)[Team::values], const std::uint32_t* words,
                                 const Wanted& wanted, Level* levels, std::uint32_t* out) {
  const bool infinite = scale.extended && scale.scale_double.below + scale.scale_double.above != 0;
  if (scale.extended)
    round_extended<Team, stochastic>(
        scale, tile, values, words, {infinite ? nullptr : wanted.residual, wanted.decoded}, levels);
  else if (is_full<Team>(tile))
    round_values<Team, stochastic, true>(scale.scale_float, tile, values, words, wanted, levels);
  else
    round_values<Team, stochastic, false>(scale.scale_float, tile, values, words, wanted, levels);
  write_levels<Team>(payload, tile, levels, out);
}
template <typename Team, bool stochastic, typename Shared>
SLIMPI_DEVICE void encode_tile(const Payload& payload, const RandomStream& random, const Tile& tile,
                               const float (&values)[Team::values], const Wanted& wanted,
                               Shared& shared, std::uint32_t* out) {
  const std::uint32_t* words = nullptr;
  if constexpr (stochastic) {
    words = random_words<Team>(random, first_of(payload, tile), tile.count, shared);
    Team::sync();
  }
  if (shared.scale.nonfinite) {
    const std::uint32_t count = words_of(payload, tile.count);
    for (std::uint32_t w = (std::uint32_t)Team::thread(); w < count; w += Team::threads) out[w] = 0;
    if (wanted.decoded != nullptr)
      for (std::uint32_t i = (std::uint32_t)Team::thread(); i < tile.count; i += Team::threads)
        wanted.decoded[i] = nan_value();
    return;
  }
  if (payload.format.bits <= 8)
    encode_finite<Team, stochastic>(payload, shared.scale, tile, values, words, wanted,
                                    shared.levels, out);
  else if constexpr (stochastic)  // the level replaces its random word
    encode_finite<Team, stochastic>(payload, shared.scale, tile, values, words, wanted,
                                    (std::uint32_t*)words, out);
  else
    encode_finite<Team, stochastic>(payload, shared.scale, tile, values, words, wanted,
                                    (std::uint16_t*)shared.levels, out);
}

// Returns the extremes of the values that this thread holds.
template <typename Team>
SLIMPI_DEVICE Extremes extremes_of(const Tile& tile, const float (&values)[Team::values]) {
  Extremes found = no_extremes();
  if (is_full<Team>(tile)) {
    SLIMPI_UNROLL
    for (int j = 0; j < Team::values; ++j) include(found, bits_of(values[j]));
  } else {
    SLIMPI_UNROLL
    for (int j = 0; j < Team::values; ++j)
      if (has<Team>(tile, j)) include(found, bits_of(values[j]));
  }
  return found;
}

// Encodes the buckets of one block of threads. Each team (a warp or the block) holds one bucket,
// which is one tile, in its registers. If there is a residual, the caller has added it by
// add_residual().
template <typename Team, bool stochastic, typename Shared>
SLIMPI_DEVICE void encode_buckets(const Payload& payload, const RandomStream& random,
                                  const Tile& tile, const float (&values)[Team::values],
                                  const Wanted& wanted, Shared (&all)[Team::teams],
                                  std::byte* out) {
  Shared& shared = all[Team::index()];
  const Extremes found = over_team<Team>(extremes_of<Team>(tile, values), shared.partial);
  if (Team::thread() == 0) {
    if (wanted.residual == nullptr)
      shared.header = header_of(found);
    else if (!keeps_header(payload.format, shared.header))
      shared.header = header_of_sums(payload.format, header_of(found), shared.limit);
  }
  Team::sync();
  if (has_infinity(shared.header)) {
    Extremes mine = no_extremes();
    for (int j = 0; j < Team::values; ++j)
      if (has<Team>(tile, j) && is_finite(values[j])) include(mine, bits_of(values[j]));
    const Extremes of_finite = over_team<Team>(mine, shared.partial);
    if (Team::thread() == 0)
      shared.header = infinite_header(shared.header, of_finite, payload.format.bits);
  }
  if (Team::thread() == 0 && tile.count != 0)
    write_header(shared.header, header_in(payload, tile, out));
  if (Team::teams > 1) __syncthreads();
  if (threadIdx.x < Team::teams)
    open_scale(all[threadIdx.x].header, payload.format.bits, stochastic, all[threadIdx.x].scale);
  __syncthreads();
  if (tile.count != 0)
    encode_tile<Team, stochastic>(payload, random, tile, values, wanted, shared,
                                  levels_in(payload, tile, out));
}

// Loads this thread's values of the tile from `from`; a value beyond the end of the tile becomes 0.
// nvcc compiles the conditions to predicates, so that there are no branches.
template <typename Team>
SLIMPI_DEVICE void load_values(const Tile& tile, const float* from, float (&values)[Team::values]) {
  const float* const mine = from + Team::thread();
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j)
    values[j] = has<Team>(tile, j) ? mine[j * Team::threads] : 0.0f;
}

// Adds the clamped residual to the values of a bucket that is one tile. The residuals are loaded
// before the team waits for the limit.
template <typename Team, typename Shared>
SLIMPI_DEVICE void add_residual(const Payload& payload, const Tile& tile, const float* residual,
                                float (&values)[Team::values], Shared& shared) {
  float more[Team::values];
  load_values<Team>(tile, residual, more);
  const Extremes found = over_team<Team>(extremes_of<Team>(tile, values), shared.partial);
  if (Team::thread() == 0) {
    shared.header = header_of(found);
    shared.limit = residual_limit(payload.format, shared.header);
  }
  Team::sync();
  const float limit = shared.limit;
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) values[j] = values[j] + clamp_residual(more[j], limit);
}

SLIMPI_DEVICE float* at_or_null(float* memory, std::uint64_t first) {
  return memory == nullptr ? nullptr : memory + first;
}
SLIMPI_DEVICE const float* at_or_null(const float* memory, std::uint64_t first) {
  return memory == nullptr ? nullptr : memory + first;
}

// The extremes of a bucket that is too long for one block of threads. Until the bucket is encoded,
// the blocks collect them in the first three words of the bucket's own memory in the message:
//   0 and 1   the minimum and the maximum, as keys, until the header replaces them
//   2         the limit of residuals, if there are residuals, until the first levels replace it.
//             If the sign bit of this word is set, the limit is its magnitude, and words 0 and 1
//             stay the extremes of the values without residuals (keeps_header()). If the word is a
//             NaN, the bucket is not finite
// A key is an unsigned integer that sorts like its float. The blocks collect keys by atomic
// operations, so the result does not depend on the order of the blocks.
constexpr std::uint32_t kNonfiniteKey = 0xffffffff;  // as the maximum: some value is a NaN

SLIMPI_DEVICE std::uint32_t key_of(float value) {
  const std::uint32_t bits = bits_of(value);
  return bits ^ (bits >> 31 != 0 ? 0xffffffff : 0x80000000);
}
SLIMPI_DEVICE float value_of(std::uint32_t key) {
  return float_of(key ^ (key >> 31 != 0 ? 0x80000000 : 0xffffffff));
}

SLIMPI_DEVICE void write_no_keys(std::uint32_t* at) {
  at[0] = UINT32_MAX;
  at[1] = 0;
}
SLIMPI_DEVICE Header read_keys(const std::uint32_t* at) {
  if (at[1] == kNonfiniteKey) return nonfinite_header();
  return {value_of(at[0]), value_of(at[1])};
}
SLIMPI_DEVICE void add_extremes(const Extremes& found, std::uint32_t* at) {
  const Header header = header_of(found);
  if (header.min != header.min) {
    atomicMax((unsigned*)at + 1, kNonfiniteKey);
  } else {
    atomicMin((unsigned*)at, key_of(header.min));
    atomicMax((unsigned*)at + 1, key_of(header.max));
  }
}

}  // namespace slimpi::kernels::cuda
