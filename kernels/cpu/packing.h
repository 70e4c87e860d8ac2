// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks the levels of a tile; unpacked, a level is one byte. Included by loops.cpp
// alone.
#pragma once
#include <cstring>

#include "kernels/cpu/tiles.h"
#include "kernels/math/pack.h"

namespace slimpi::kernels {
namespace {

// A tile of levels: bytes for the arithmetic, 64-bit groups for the packing.
struct Levels {
  alignas(64) std::uint64_t groups[kTile / 8];

  std::uint8_t* bytes() { return (std::uint8_t*)groups; }
};

// The integer type of `bits` bytes; defined only where such a type exists.
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

// Packs the first n of `levels` into `out`, where `room` bytes are left until the end of the
// bucket. The last tile of a bucket fills all of them.
template <int bits>
void pack(Levels& levels, std::size_t n, bool last, std::byte* SLIMPI_RESTRICT out,
          std::size_t room) {
  const std::size_t groups = (n + 7) / 8;
  for (std::size_t i = n; i < groups * 8; ++i) levels.bytes()[i] = 0;
  std::uint64_t* SLIMPI_RESTRICT words = levels.groups;
  std::size_t g = 0;
  if constexpr (Packed<bits>::is_integer) {
    const std::size_t whole = room / bits < groups ? room / bits : groups;
    for (; g < whole; ++g) {
      const auto packed = (typename Packed<bits>::Integer)pack_group<bits>(words[g]);
      std::memcpy(out + g * bits, &packed, bits);
    }
  } else {
    for (std::size_t k = 0; k < groups; ++k) words[k] = pack_group<bits>(words[k]);
    // A whole word is stored for each group; the next store overwrites the excess bytes.
    const std::size_t whole = room < 8 ? 0 : (room - 8) / bits + 1;
    for (; g < groups && g < whole; ++g) std::memcpy(out + g * bits, &words[g], 8);
  }
  for (; g < groups; ++g) {
    const std::uint64_t packed = Packed<bits>::is_integer ? pack_group<bits>(words[g]) : words[g];
    std::memcpy(out + g * bits, &packed, room - g * bits < bits ? room - g * bits : bits);
  }
  if (last && groups * bits < room) std::memset(out + groups * bits, 0, room - groups * bits);
}

// Unpacks n levels from `in`, which holds `room` bytes.
template <int bits>
void unpack(const std::byte* SLIMPI_RESTRICT in, std::size_t room, std::size_t n, Levels& levels) {
  const std::size_t groups = (n + 7) / 8;
  std::uint64_t* SLIMPI_RESTRICT words = levels.groups;
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

// The same with the number of bits as an argument. 8 bits need no packing.
void pack(int bits, Levels& levels, std::size_t n, bool last, std::byte* out, std::size_t room) {
  constexpr decltype(&pack<1>) kByWidth[] = {pack<1>, pack<2>, pack<3>, pack<4>,
                                             pack<5>, pack<6>, pack<7>};
  kByWidth[bits - 1](levels, n, last, out, room);
}
void unpack(int bits, const std::byte* in, std::size_t room, std::size_t n, Levels& levels) {
  constexpr decltype(&unpack<1>) kByWidth[] = {unpack<1>, unpack<2>, unpack<3>, unpack<4>,
                                               unpack<5>, unpack<6>, unpack<7>};
  kByWidth[bits - 1](in, room, n, levels);
}

}  // namespace
}  // namespace slimpi::kernels
