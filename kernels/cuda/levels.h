// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks the levels of a tile. In memory the levels are a sequence of bits, where level
// i takes bits [i * bits, (i + 1) * bits). This is the layout that kernels/format.h describes by
// groups.
#pragma once
#include "kernels/cuda/team.h"
#include "kernels/math/pack.h"

namespace slimpi::kernels::cuda {

// The levels of a thread: level j is in word[j], from bit `shift` on, which is the same for all j.
template <typename Team>
struct Levels {
  std::uint32_t word[Team::values], shift, mask;

  SLIMPI_DEVICE std::uint16_t at(int j) const {
    return (std::uint16_t)(word[j] >> shift & mask);
  }
};

// Loads `values` levels of this thread, beginning with its level `from`: for each of them, the
// 32-bit word in which the level begins. Successive levels are `step` words apart. A level beyond
// the end of the tile is loaded as 0.
template <typename Team, int from, int values>
SLIMPI_DEVICE void load_words(const Tile& tile, const std::uint32_t* words, std::uint32_t step,
                              std::uint32_t* loaded) {
  SLIMPI_UNROLL
  for (int j = 0; j < values; ++j)
    loaded[j] = has<Team>(tile, from + j) ? words[(std::uint32_t)(from + j) * step] : 0;
}

// Loads half of this thread's levels, of any width; a level may continue in the next word.
template <typename Team, int from>
SLIMPI_DEVICE void load_crossing(const Tile& tile, const std::uint32_t* words, std::uint32_t width,
                                 std::uint32_t* levels) {
  constexpr int kValues = Team::values / 2;
  const std::uint32_t begin = (std::uint32_t)Team::thread() * width;
  const std::uint32_t step = Team::threads / 32 * width;
  std::uint32_t low[kValues], high[kValues];
  load_words<Team, from, kValues>(tile, words + begin / 32, step, low);
  load_words<Team, from, kValues>(tile, words + (begin + width - 1) / 32, step, high);
  SLIMPI_UNROLL
  for (int j = 0; j < kValues; ++j)
    levels[from + j] = (std::uint32_t)(((std::uint64_t)high[j] << 32 | low[j]) >> begin % 32);
}

// Loads this thread's levels; those beyond the end of the tile are 0. Keeps the loads of all
// levels, or of half of them, in flight together. The elements of a thread are a multiple of 32
// apart, so all its levels begin at the same bit of their words. For the widths 8, 4 and 2 the
// branches make the width a constant, and a load takes one instruction.
template <typename Team>
SLIMPI_DEVICE Levels<Team> load_levels(const Tile& tile, const std::uint32_t* words, int bits) {
  static_assert(Team::threads % 32 == 0);
  constexpr int kValues = Team::values;
  constexpr std::uint32_t kRows = Team::threads / 32;
  const auto width = (std::uint32_t)bits, begin = (std::uint32_t)Team::thread() * width;
  Levels<Team> levels;
  levels.shift = begin % 32;
  levels.mask = (1u << width) - 1;
  if (width == 8) {
    load_words<Team, 0, kValues>(tile, words + begin / 32, kRows * 8, levels.word);
  } else if (width == 4) {
    load_words<Team, 0, kValues>(tile, words + begin / 32, kRows * 4, levels.word);
  } else if (width == 2) {
    load_words<Team, 0, kValues>(tile, words + begin / 32, kRows * 2, levels.word);
  } else {
    load_crossing<Team, 0>(tile, words, width, levels.word);
    load_crossing<Team, kValues / 2>(tile, words, width, levels.word);
    levels.shift = 0;
  }
  return levels;
}

// Returns level i of a tile whose packed levels begin at `words`.
SLIMPI_DEVICE std::uint16_t level_at(const std::uint32_t* words, int bits, std::uint32_t i) {
  const std::uint32_t at = i * (std::uint32_t)bits, word = at / 32, shift = at % 32;
  std::uint32_t level = words[word] >> shift;
  // The next word is read only if the level continues there, since the segment may end here.
  if (shift + (std::uint32_t)bits > 32) level |= words[word + 1] << (32 - shift);
  return (std::uint16_t)(level & ((1u << bits) - 1));
}

SLIMPI_DEVICE std::uint64_t pack_group_of(int bits, std::uint64_t spread) {
  switch (bits) {
    case 1:
      return pack_group<1>(spread);
    case 2:
      return pack_group<2>(spread);
    case 3:
      return pack_group<3>(spread);
    case 4:
      return pack_group<4>(spread);
    case 5:
      return pack_group<5>(spread);
    case 6:
      return pack_group<6>(spread);
    case 7:
      return pack_group<7>(spread);
    default:
      return spread;
  }
}

// Writes a packed group: 8 levels, which take `bits` bytes. The distance of `to` from a 4-byte
// boundary must be a multiple of `bits`, so that the stores of 2 and 4 bytes are aligned.
SLIMPI_DEVICE void put_group(int bits, std::uint64_t packed, std::uint8_t* to) {
  if (bits % 2 != 0) {
    for (int i = 0; i < bits; ++i) to[i] = (std::uint8_t)(packed >> 8 * i);
  } else if (bits == 4) {
    *(std::uint32_t*)to = (std::uint32_t)packed;
  } else {
    for (int i = 0; i < bits; i += 2) *(std::uint16_t*)(to + i) = (std::uint16_t)(packed >> 8 * i);
  }
}

// Packs the levels of a tile, of at most 8 bits, in place and writes them to `out`. `levels` is
// shared memory, aligned to 8, with a byte per level and kElements<Team> bytes in all. Every thread
// of the team must call this once it has stored its levels.
template <typename Team>
SLIMPI_DEVICE void write_levels(const Payload& payload, const Tile& tile, std::uint8_t* levels,
                                std::uint32_t* out) {
  constexpr int kGroups = Team::values / 8;  // groups of one thread
  const int bits = payload.format.bits, thread = Team::thread();
  // Pad the last word with levels of 0.
  const std::uint32_t count = tile.count;
  const std::uint32_t padded = (count + 31) / 32 * 32;
  if ((std::uint32_t)thread < padded - count) levels[count + (std::uint32_t)thread] = 0;
  Team::sync();
  if (bits != 8) {
    std::uint64_t packed[kGroups];
    SLIMPI_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const std::uint32_t group = (std::uint32_t)(thread + g * Team::threads);
      if (group * 8 < padded)
        packed[g] = pack_group_of(bits, ((const std::uint64_t*)levels)[group]);
    }
    Team::sync();
    SLIMPI_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const std::uint32_t group = (std::uint32_t)(thread + g * Team::threads);
      if (group * 8 < padded) put_group(bits, packed[g], levels + group * (std::uint32_t)bits);
    }
    Team::sync();
  }
  const std::uint32_t words = words_of(payload, count);
  for (std::uint32_t w = (std::uint32_t)thread; w < words; w += Team::threads)
    out[w] = ((const std::uint32_t*)levels)[w];
}

// Packs the levels of a tile, of more than 8 bits, and writes them to `out`. Each thread builds
// whole words, from the up to five levels that have bits in a word.
template <typename Team, typename Level>
SLIMPI_DEVICE void write_levels(const Payload& payload, const Tile& tile, const Level* levels,
                                std::uint32_t* out) {
  const std::uint32_t width = payload.format.bits, words = words_of(payload, tile.count);
  Team::sync();
  for (std::uint32_t w = (std::uint32_t)Team::thread(); w < words; w += Team::threads) {
    const std::uint32_t begin = 32 * w;
    std::uint32_t i = begin / width;
    std::uint32_t word = (std::uint32_t)levels[i] >> (begin - i * width);
    for (++i; i * width < begin + 32 && i < tile.count; ++i)
      word |= (std::uint32_t)levels[i] << (i * width - begin);
    out[w] = word;
  }
}

}  // namespace slimpi::kernels::cuda
