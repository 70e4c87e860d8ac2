// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks the levels of a tile of a quantized segment. Unpacked, a level takes one byte,
// or two if it has more than 8 bits. Included by loops.cpp alone.
#pragma once
#include <cstring>

#include "kernels/cpu/tiles.h"
#include "kernels/math/pack.h"

namespace slimpi::kernels {
namespace {

using Narrow = std::uint8_t;  // a level of up to 8 bits
using Wide = std::uint16_t;   // a level of 9 to 16 bits

template <typename Level>
constexpr int kBits = 8 * (int)sizeof(Level);

// The unpacked levels of a tile. The arithmetic reads and writes them as bytes or 16-bit integers,
// while the packing uses them as 64-bit words.
template <typename Level>
struct Levels {
  using Word [[gnu::may_alias]] = std::uint64_t;
  alignas(64) Word words[kTile * sizeof(Level) / sizeof(Word)];

  Level* values() { return (Level*)words; }
};

// The integer type of a packed group of 8 levels of `bits` bits, if a type of this size exists.
template <int bits>
struct Packed {
  static constexpr bool is_integer = false;
};
template <>
struct Packed<1> {
  static constexpr bool is_integer = true;
  using Integer = std::uint8_t;
};
template <>
struct Packed<2> {
  static constexpr bool is_integer = true;
  using Integer = std::uint16_t;
};
template <>
struct Packed<4> {
  static constexpr bool is_integer = true;
  using Integer = std::uint32_t;
};

// Packs the first n of `levels` into `out`, where `room` bytes remain until the end of the bucket.
// For the last tile of a bucket it also writes the zeros that pad the bucket.
template <int bits>
void pack(Levels<Narrow>& levels, std::size_t n, bool last, std::byte* SLIMPI_RESTRICT out,
          std::size_t room) {
  const std::size_t groups = (n + 7) / 8;
  for (std::size_t i = n; i < groups * 8; ++i) levels.values()[i] = 0;
  std::uint64_t* SLIMPI_RESTRICT words = levels.words;
  std::size_t g = 0;
  if constexpr (Packed<bits>::is_integer) {
    const std::size_t whole = room / bits < groups ? room / bits : groups;
    for (; g < whole; ++g) {
      const auto packed = (typename Packed<bits>::Integer)pack_group<bits>(words[g]);
      std::memcpy(out + g * bits, &packed, bits);
    }
  } else {
    for (std::size_t k = 0; k < groups; ++k) words[k] = pack_group<bits>(words[k]);
    // Stores a whole word per group; the next store overwrites the excess bytes.
    const std::size_t whole = room < 8 ? 0 : (room - 8) / bits + 1;
    for (; g < groups && g < whole; ++g) std::memcpy(out + g * bits, &words[g], 8);
  }
  for (; g < groups; ++g) {
    const std::uint64_t packed = Packed<bits>::is_integer ? pack_group<bits>(words[g]) : words[g];
    std::memcpy(out + g * bits, &packed, room - g * bits < bits ? room - g * bits : bits);
  }
  if (last && groups * bits < room) std::memset(out + groups * bits, 0, room - groups * bits);
}

// Unpacks n levels from the `room` bytes at `in`.
template <int bits>
void unpack(const std::byte* SLIMPI_RESTRICT in, std::size_t room, std::size_t n,
            Levels<Narrow>& levels) {
  const std::size_t groups = (n + 7) / 8;
  std::uint64_t* SLIMPI_RESTRICT words = levels.words;
  std::size_t g = 0;
  if constexpr (Packed<bits>::is_integer) {
    const std::size_t whole = room / bits < groups ? room / bits : groups;
    for (; g < whole; ++g) {
      typename Packed<bits>::Integer packed;
      std::memcpy(&packed, in + g * bits, bits);
      words[g] = spread_group<bits>(packed);
    }
  } else {
    const std::size_t whole = room < 8 ? 0 : (room - 8) / bits + 1;
    for (; g < groups && g < whole; ++g) std::memcpy(&words[g], in + g * bits, 8);
    for (std::size_t k = 0; k < g; ++k) words[k] = spread_group<bits>(words[k]);
  }
  for (; g < groups; ++g) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, in + g * bits, room - g * bits < bits ? room - g * bits : bits);
    words[g] = spread_group<bits>(packed);
  }
}

// pack() and unpack() with the number of bits, 1 to 7, known only at run time. (Levels of 8 bits
// need no packing.)
void pack(int bits, Levels<Narrow>& levels, std::size_t n, bool last, std::byte* out,
          std::size_t room) {
  constexpr decltype(&pack<1>) kByWidth[] = {pack<1>, pack<2>, pack<3>, pack<4>,
                                             pack<5>, pack<6>, pack<7>};
  kByWidth[bits - 1](levels, n, last, out, room);
}
void unpack(int bits, const std::byte* in, std::size_t room, std::size_t n,
            Levels<Narrow>& levels) {
  constexpr decltype(&unpack<1>) kByWidth[] = {unpack<1>, unpack<2>, unpack<3>, unpack<4>,
                                               unpack<5>, unpack<6>, unpack<7>};
  kByWidth[bits - 1](in, room, n, levels);
}

// Pack and unpack four levels, half a group, of 9 to 15 bits, which take 16 bits each when
// unpacked.
SLIMPI_HD std::uint64_t pack_four(std::uint64_t spread, int bits) {
  const std::uint64_t two = (1ull << 2 * bits) - 1, one = ((1ull << bits) - 1) * 0x100000001;
  const std::uint64_t pairs = (spread & one) | (spread >> (16 - bits) & one << bits);
  return (pairs & two) | (pairs >> (32 - 2 * bits) & two << 2 * bits);
}
SLIMPI_HD std::uint64_t spread_four(std::uint64_t packed, int bits) {
  const std::uint64_t two = (1ull << 2 * bits) - 1, one = ((1ull << bits) - 1) * 0x100000001;
  const std::uint64_t pairs = (packed & two) | (packed << (32 - 2 * bits) & two << 32);
  return (pairs & one) | (pairs << (16 - bits) & one << 16);
}

// Pack and unpack levels of 9 to 15 bits. A group is stored and loaded as two words; the next group
// overwrites the excess bytes.
void pack(int bits, Levels<Wide>& levels, std::size_t n, bool last, std::byte* SLIMPI_RESTRICT out,
          std::size_t room) {
  const std::size_t groups = (n + 7) / 8, width = (std::size_t)bits;
  for (std::size_t i = n; i < groups * 8; ++i) levels.values()[i] = 0;
  Levels<Wide>::Word* SLIMPI_RESTRICT fours = levels.words;
  for (std::size_t k = 0; k < 2 * groups; ++k) fours[k] = pack_four(fours[k], bits);
  for (std::size_t g = 0; g < groups; ++g) {
    const std::uint64_t packed[] = {fours[2 * g] | fours[2 * g + 1] << 4 * bits,
                                    fours[2 * g + 1] >> (64 - 4 * bits)};
    std::byte* const to = out + g * width;
    const std::size_t left = room - g * width;
    if (left >= sizeof packed) {  // two stores, because one of 16 bytes would wait for both words
      std::memcpy(to, &packed[0], 8);
      std::memcpy(to + 8, &packed[1], 8);
    } else {
      std::memcpy(to, packed, left < width ? left : width);
    }
  }
  if (last && groups * width < room) std::memset(out + groups * width, 0, room - groups * width);
}
void unpack(int bits, const std::byte* SLIMPI_RESTRICT in, std::size_t room, std::size_t n,
            Levels<Wide>& levels) {
  const std::size_t groups = (n + 7) / 8, width = (std::size_t)bits;
  Levels<Wide>::Word* SLIMPI_RESTRICT fours = levels.words;
  for (std::size_t g = 0; g < groups; ++g) {
    std::uint64_t packed[2] = {};
    const std::byte* const from = in + g * width;
    const std::size_t left = room - g * width;
    if (left >= sizeof packed) {
      std::memcpy(&packed[0], from, 8);
      std::memcpy(&packed[1], from + 8, 8);
    } else {
      std::memcpy(packed, from, left < width ? left : width);
    }
    fours[2 * g] = packed[0];
    fours[2 * g + 1] = packed[0] >> 4 * bits | packed[1] << (64 - 4 * bits);
  }
  for (std::size_t k = 0; k < 2 * groups; ++k) fours[k] = spread_four(fours[k], bits);
}

}  // namespace
}  // namespace slimpi::kernels
