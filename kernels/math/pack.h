// SPDX-License-Identifier: BSD-3-Clause
// Packs groups of 8 levels (integers that stand for values) of `bits` bits each, at most 8.
// Unpacked ("spread"), a group is a little-endian 64-bit word with a byte per level. Packed, level
// i takes bits [i * bits, (i + 1) * bits).
#pragma once
#include "kernels/format.h"

namespace slimpi::kernels {

// Returns a mask for a 64-bit word that consists of fields of `field` bits: the low `width` bits of
// each field.
SLIMPI_HD constexpr std::uint64_t field_mask(int field, int width) {
  std::uint64_t mask = 0;
  const std::uint64_t low = width == 64 ? ~0ull : (1ull << width) - 1;
  for (int at = 0; at < 64; at += field) mask |= low << at;
  return mask;
}

// One step of packing, and its inverse. The word consists of fields of `field` bits, each with a
// number in its low `width` bits. join_pairs() joins every two fields into one, which has both
// numbers in its low 2 * width bits; split_pairs() separates them again.
template <int field, int width>
SLIMPI_HD std::uint64_t join_pairs(std::uint64_t word) {
  constexpr std::uint64_t even = field_mask(2 * field, width);
  return (word & even) | (word >> (field - width) & even << width);
}
template <int field, int width>
SLIMPI_HD std::uint64_t split_pairs(std::uint64_t word) {
  constexpr std::uint64_t even = field_mask(2 * field, width);
  return (word & even) | (word << (field - width) & even << field);
}

template <int bits>
SLIMPI_HD std::uint64_t pack_group(std::uint64_t spread) {
  return join_pairs<32, 4 * bits>(join_pairs<16, 2 * bits>(join_pairs<8, bits>(spread)));
}
// Unpacks a group. Bits of `packed` beyond the 8 * bits of the group are ignored.
template <int bits>
SLIMPI_HD std::uint64_t spread_group(std::uint64_t packed) {
  return split_pairs<8, bits>(split_pairs<16, 2 * bits>(split_pairs<32, 4 * bits>(packed)));
}

}  // namespace slimpi::kernels
