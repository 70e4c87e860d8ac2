// SPDX-License-Identifier: BSD-3-Clause
// Loops of the packed codec over a bucket in x86's vector instructions, with the results of the
// plain loops bit by bit. g++ 12 reduces each extreme of a bucket by itself, clamps levels as
// 32-bit integers and masks them before it narrows them: about twice the instructions. Included by
// loops.cpp alone.
#pragma once
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstring>

#include "kernels/cpu/packing.h"
#include "kernels/math/packed.h"

namespace slimpi::kernels {
namespace {

// BucketExtremes without initial values, for arrays.
struct FoundExtremes {
  std::int32_t high;
  std::uint32_t low;
};

SLIMPI_HD FoundExtremes extremes_of(const float* from, std::size_t n) {
  BucketExtremes extremes;
  for (std::size_t i = 0; i < n; ++i) include(extremes, bits_of(from[i]));
  return {extremes.high, extremes.low};
}

#if defined(__SSE2__)
#if defined(__AVX512BW__)
constexpr std::size_t kVector = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVector = 32;
#else
constexpr std::size_t kVector = 16;
#endif
typedef float VectorFloats [[gnu::vector_size(kVector)]];
typedef std::int32_t VectorInts [[gnu::vector_size(kVector)]];
constexpr std::size_t kInts = kVector / sizeof(std::int32_t);  // of a vector

// The integers of four vectors as bytes, one vector; those outside of 0 to `last`, which is the
// same in each byte, become 0 or `last`.
SLIMPI_HD VectorInts clamp_to_bytes(const VectorInts (&four)[4], VectorInts last) {
#if defined(__AVX512BW__)
  const __m512i words[] = {_mm512_packs_epi32((__m512i)four[0], (__m512i)four[1]),
                           _mm512_packs_epi32((__m512i)four[2], (__m512i)four[3])};
  const VectorInts order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const __m512i bytes = _mm512_min_epu8(_mm512_packus_epi16(words[0], words[1]), (__m512i)last);
  return __builtin_shuffle((VectorInts)bytes, order);
#elif defined(__AVX2__)
  const __m256i words[] = {_mm256_packs_epi32((__m256i)four[0], (__m256i)four[1]),
                           _mm256_packs_epi32((__m256i)four[2], (__m256i)four[3])};
  const VectorInts order = {0, 4, 1, 5, 2, 6, 3, 7};
  const __m256i bytes = _mm256_min_epu8(_mm256_packus_epi16(words[0], words[1]), (__m256i)last);
  return __builtin_shuffle((VectorInts)bytes, order);
#else
  const __m128i words[] = {_mm_packs_epi32((__m128i)four[0], (__m128i)four[1]),
                           _mm_packs_epi32((__m128i)four[2], (__m128i)four[3])};
  return (VectorInts)_mm_min_epu8(_mm_packus_epi16(words[0], words[1]), (__m128i)last);
#endif
}

// nearest_level() of each value of a bucket, for levels of up to 8 bits.
SLIMPI_HD void to_bucket_levels(const PackedScale& scale, const float* from, Narrow* to) {
  const auto most = (std::uint32_t)(scale.last_level - kRoundingBits);
  const VectorInts last = VectorInts{} + (std::int32_t)(most * 0x01010101u);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kPackedBucket; i += kVector) {
    VectorInts level[4];
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      VectorFloats x;
      std::memcpy(&x, from + i + k * kInts, sizeof x);
      level[k] = (VectorInts)(x * scale.inverse_step + scale.origin) - kRoundingBits;
    }
    const VectorInts bytes = clamp_to_bytes(level, last);
    std::memcpy(to + i, &bytes, sizeof bytes);
  }
}
#else
SLIMPI_HD void to_bucket_levels(const PackedScale& scale, const float* from, Narrow* to) {
  to_nearest_levels(scale, from, kPackedBucket, to);
}
#endif

// Decodes a bucket whose levels have up to 8 bits. Widths change from bucket to bucket, so that no
// processor foresees a branch on them: loads of bits that a width does not have are masked off.
// AVX2 gains by that only where values are added.
#if defined(__AVX2__)
template <bool adds>
constexpr bool kAnyWidth = adds || kVector == 64;
typedef std::uint64_t VectorWords [[gnu::vector_size(kVector)]];

// The bytes of a bucket with `bits` bits, at most a vector of them; zeros unless the width has
// these.
#if defined(__AVX512BW__)
constexpr VectorWords kWord = {0, 1, 2, 3, 4, 5, 6, 7};
template <std::uint32_t bits>
SLIMPI_HD VectorWords load_if(std::uint32_t width, const std::byte* in) {
  constexpr __mmask64 all = ~(__mmask64)0 >> (64 - bits * kUnitBytes);
  return (VectorWords)_mm512_maskz_loadu_epi8((0 - (__mmask64)((width & bits) != 0)) & all, in);
}
SLIMPI_HD void widen(__m128i bytes, VectorInts* to) {
  to[0] = (VectorInts)_mm512_maskz_cvtepu8_epi32(0xffff, bytes);
}
// canonical() of sums.
struct Canonical {
  VectorFloats of(VectorFloats sums) {
    return sums == sums ? sums : (VectorFloats)(VectorInts{} + kNanBits);
  }
  bool is_left() const { return false; }
};
#else
constexpr VectorWords kWord = {0, 1, 2, 3};
template <std::uint32_t bits>
SLIMPI_HD VectorWords load_if(std::uint32_t width, const std::byte* in) {
  const VectorWords there = (VectorWords)(((VectorInts{} + (int)width) & (int)bits) != 0);
  const VectorWords first = (VectorWords)(kWord < VectorWords{} + bits);
  return (VectorWords)_mm256_maskload_epi32((const int*)in, (__m256i)(there & first));
}
SLIMPI_HD void widen(__m128i bytes, VectorInts* to) {
  to[0] = (VectorInts)_mm256_cvtepu8_epi32(bytes);
  to[1] = (VectorInts)_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes));
}
// Leaves canonical() of sums to the end, if there is a NaN: a blend for each vector is a third of
// the time.
struct Canonical {
  VectorInts unordered{};
  VectorFloats of(VectorFloats sums) {
    unordered |= (VectorInts)(sums != sums);
    return sums;
  }
  bool is_left() const { return _mm256_movemask_ps((__m256)unordered) != 0; }
};
#endif

// to = the values, or sum + the values; `to` may be `sum`. pack_part() and pack_bit() say where the
// bits of a level are. Levels stay in registers: loads of what was just stored would wait.
template <bool adds>
SLIMPI_HD void decode_any(const PackedScale& scale, std::uint32_t width, const std::byte* in,
                          const float* sum, float* to) {
  const std::uint32_t four = width & 4, six = width & 6;
  const VectorWords fours = load_if<4>(width, in);
  const VectorWords twos = load_if<2>(width, in + four * kUnitBytes);
  const VectorWords ones = load_if<1>(width, in + six * kUnitBytes);
  constexpr std::uint64_t each = 0x0101010101010101u;
  Canonical sums;
#pragma GCC unroll 2
  for (std::size_t i = 0; i < kPackedBucket; i += kVector) {
    const VectorWords word = kWord + i / 8;
    const VectorWords high = __builtin_shuffle(fours, kWord & 3) >> (word >> 2) * 4;
    const VectorWords middle = __builtin_shuffle(twos, kWord & 1) >> (word >> 1) * 2;
    const VectorWords low = __builtin_shuffle(ones, kWord & 0) >> word;
    const VectorWords levels = load_if<8>(width, in + i) | (high & 0xf * each) |
                               (middle & 3 * each) << four | (low & each) << six;
    __m128i bytes[kVector / 16];
    std::memcpy(bytes, &levels, sizeof bytes);
    VectorInts level[4];
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kVector / 16; ++k) widen(bytes[k], level + k * (16 / kInts));
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t at = i + k * kInts;
      VectorFloats values = ((VectorFloats)(level[k] | kRoundingBits) - scale.origin) * scale.step;
      if constexpr (adds) {
        VectorFloats before;
        std::memcpy(&before, sum + at, sizeof before);
        values = sums.of(before + values);
      }
      std::memcpy(to + at, &values, sizeof values);
    }
  }
  if (sums.is_left()) [[unlikely]]
    for (std::size_t i = 0; i < kPackedBucket; ++i) to[i] = canonical(to[i]);
}
#else
template <bool adds>
constexpr bool kAnyWidth = false;
template <bool adds>
SLIMPI_HD void decode_any(const PackedScale&, std::uint32_t, const std::byte*, const float*,
                          float*) {}
#endif

// The extremes of a bucket. Minima and maxima of 32-bit integers begin with SSE4.1, for which there
// is no copy of the loops.
#if defined(__AVX2__)
typedef std::uint32_t VectorUnsigned [[gnu::vector_size(kVector)]];
typedef std::int32_t EightInts [[gnu::vector_size(32)]];
typedef std::int32_t FourInts [[gnu::vector_size(16)]];

template <typename Vector>
SLIMPI_HD Vector greater(Vector a, Vector b) {
  return a > b ? a : b;
}

// Maxima of both, alternating: high, low, high, low.
#if defined(__AVX512BW__)
SLIMPI_HD EightInts in_turns(VectorInts high, VectorInts low) {
  const VectorInts both = greater(
      __builtin_shufflevector(high, low, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29),
      __builtin_shufflevector(high, low, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15,
                              31));
  return greater(__builtin_shufflevector(both, both, 0, 1, 2, 3, 4, 5, 6, 7),
                 __builtin_shufflevector(both, both, 8, 9, 10, 11, 12, 13, 14, 15));
}
#else
SLIMPI_HD EightInts in_turns(VectorInts high, VectorInts low) {
  return greater(__builtin_shufflevector(high, low, 0, 8, 1, 9, 4, 12, 5, 13),
                 __builtin_shufflevector(high, low, 2, 10, 3, 11, 6, 14, 7, 15));
}
#endif

SLIMPI_HD FoundExtremes bucket_extremes(const float* from) {
  VectorInts high = VectorInts{} + INT32_MIN;
  VectorUnsigned low = {};
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPackedBucket; i += kInts) {
    VectorInts bits;
    std::memcpy(&bits, from + i, sizeof bits);
    high = greater(high, bits);
    low = greater(low, (VectorUnsigned)bits);
  }
  // With its sign turned, an unsigned number has its place among the signed ones: the two are
  // reduced at once.
  const EightInts half = in_turns(high, (VectorInts)low ^ INT32_MIN);
  const FourInts quarter = greater(__builtin_shufflevector(half, half, 0, 1, 2, 3),
                                   __builtin_shufflevector(half, half, 4, 5, 6, 7));
  const FourInts pair = greater(quarter, __builtin_shufflevector(quarter, quarter, 2, 3, 2, 3)) ^
                        FourInts { 0, INT32_MIN, 0, INT32_MIN };
  FoundExtremes extremes;
  std::memcpy(&extremes, &pair, sizeof extremes);
  return extremes;
}
#else
SLIMPI_HD FoundExtremes bucket_extremes(const float* from) {
  return extremes_of(from, kPackedBucket);
}
#endif

}  // namespace
}  // namespace slimpi::kernels
