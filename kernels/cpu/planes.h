// SPDX-License-Identifier: BSD-3-Clause
// Packs and unpacks, 16 bytes at a time, the levels of a bucket of the packed codec. The bits of a
// level are stored in pieces (kernels/math/packed.h). Included by loops.cpp alone.
#pragma once
#include <cstring>

#include "kernels/cpu/vectors.h"

namespace slimpi::kernels {
namespace {

typedef std::uint64_t Sixteen [[gnu::vector_size(16), gnu::may_alias]];
constexpr std::size_t kSixteen = sizeof(Sixteen);
constexpr int kSixteens = kPackedBucket / kSixteen;  // vectors that hold one byte of each level

// Returns `unit` with only the low `bits` bits of each byte kept.
template <int bits>
SLIMPI_HD Sixteen low_bits(Sixteen unit) {
  constexpr std::uint64_t mask = ((1ull << bits) - 1) * 0x0101010101010101u;
  return unit & mask;
}

// Reads a piece of `bits` bits (4 or 2) of each level from `in` into the levels' bytes, from bit
// `shift` on. Shift 0 clears the other bits of the bytes. Returns the end of the piece.
template <int bits, int shift>
SLIMPI_HD const std::byte* unpack_part(const std::byte* in, Sixteen* levels) {
  constexpr int kIn = kSixteens * bits / 8;
#pragma GCC unroll 2
  for (int i = 0; i < kIn; ++i) {
    Sixteen unit;
    std::memcpy(&unit, in + i * (int)kSixteen, sizeof unit);
#pragma GCC unroll 4
    for (int j = 0; j < 8 / bits; ++j) {
      const Sixteen part = low_bits<bits>(unit >> bits * j) << shift;
      levels[i + j * kIn] = shift == 0 ? part : levels[i + j * kIn] | part;
    }
  }
  return in + kIn * (int)kSixteen;
}
// Reads the 1-bit piece into bit `shift` of each level. Byte i of the piece has the bits of levels
// i, i + 8, ..., so the low half of `unit` serves levels i, i + 16, ... and the high half levels i
// + 8, i + 24, ....
template <int shift>
SLIMPI_HD void unpack_bit(const std::byte* in, Sixteen* levels) {
  std::uint64_t word;
  std::memcpy(&word, in, sizeof word);
  const Sixteen unit = {word, word >> 1};
#pragma GCC unroll 4
  for (int j = 0; j < kSixteens; ++j) {
    const Sixteen part = low_bits<1>(unit >> 2 * j) << shift;
    levels[j] = shift == 0 ? part : levels[j] | part;
  }
}

// Reads the low `bits` bits, 1 to 7, of all levels, piece by piece.
template <int bits>
SLIMPI_HD void unpack_low(const std::byte* in, Sixteen* levels) {
  if constexpr ((bits & 4) != 0) in = unpack_part<4, 0>(in, levels);
  if constexpr ((bits & 2) != 0) in = unpack_part<2, bits & 4>(in, levels);
  if constexpr ((bits & 1) != 0) unpack_bit<(bits & 6)>(in, levels);
}

#if !defined(__AVX2__)
// Writes the piece of `bits` bits (4 or 2) from bit `shift` on of each level. Returns the end of
// the piece.
template <int bits, int shift>
SLIMPI_HD std::byte* pack_part(const Sixteen* levels, std::byte* out) {
  constexpr int kOut = kSixteens * bits / 8;
#pragma GCC unroll 2
  for (int i = 0; i < kOut; ++i) {
    Sixteen unit = {};
#pragma GCC unroll 4
    for (int j = 0; j < 8 / bits; ++j)
      unit |= low_bits<bits>(levels[i + j * kOut] >> shift) << bits * j;
    std::memcpy(out + i * (int)kSixteen, &unit, sizeof unit);
  }
  return out + kOut * (int)kSixteen;
}
// Writes bit `shift` of each level, in the order that unpack_bit() reads.
template <int shift>
SLIMPI_HD void pack_bit(const Sixteen* levels, std::byte* out) {
  Sixteen unit = {};
#pragma GCC unroll 4
  for (int j = 0; j < kSixteens; ++j) unit |= low_bits<1>(levels[j] >> shift) << 2 * j;
  const std::uint64_t word = unit[0] | unit[1] << 1;
  std::memcpy(out, &word, sizeof word);
}
// Writes the low `bits` bits, 1 to 7, of 64 levels, piece by piece.
template <int bits>
SLIMPI_HD void pack_low(const Narrow* bytes, std::byte* out) {
  const auto* const levels = (const Sixteen*)bytes;
  if constexpr ((bits & 4) != 0) out = pack_part<4, 0>(levels, out);
  if constexpr ((bits & 2) != 0) out = pack_part<2, bits & 4>(levels, out);
  if constexpr ((bits & 1) != 0) pack_bit<(bits & 6)>(levels, out);
}
#endif

// The unpacked levels of a bucket.
template <typename Level>
struct BucketLevels {
  alignas(64) Level level[kPackedBucket];

  Sixteen* sixteens() { return (Sixteen*)level; }
};

// Packs the 64 levels of a bucket, of `width` bits each, at `out`. May change `levels`.
template <int width>
SLIMPI_HD void pack_bucket(BucketLevels<Narrow>& levels, std::byte* out) {
  if constexpr (width == 8)
    std::memcpy(out, levels.level, kPackedBucket);
  else
    pack_low<width>(levels.level, out);
}
template <int width>
SLIMPI_HD void pack_bucket(BucketLevels<Wide>& levels, std::byte* out) {
  BucketLevels<Narrow> high;
  for (std::uint32_t i = 0; i < kPackedBucket; ++i) {
    out[i] = (std::byte)levels.level[i];
    high.level[i] = (Narrow)(levels.level[i] >> 8);
  }
  pack_bucket<width - 8>(high, out + kPackedBucket);
}

// Unpacks the 64 levels of a bucket, of `width` bits each. The result points into `in` if nothing
// needs unpacking, else to `levels`.
template <int width>
SLIMPI_HD const Narrow* unpack_bucket(const std::byte* in, BucketLevels<Narrow>& levels) {
  if constexpr (width == 8) return (const Narrow*)in;
  unpack_low<width % 8>(in, levels.sixteens());
  return levels.level;
}
template <int width>
SLIMPI_HD const Wide* unpack_bucket(const std::byte* in, BucketLevels<Wide>& levels) {
  BucketLevels<Narrow> bytes;
  const Narrow* const high = unpack_bucket<width - 8>(in + kPackedBucket, bytes);
  for (std::uint32_t i = 0; i < kPackedBucket; ++i)
    levels.level[i] = (Wide)((std::uint32_t)in[i] | (std::uint32_t)high[i] << 8);
  return levels.level;
}

}  // namespace
}  // namespace slimpi::kernels
