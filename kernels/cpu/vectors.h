// SPDX-License-Identifier: BSD-3-Clause
// Two loops of the packed codec over a bucket in x86's vector instructions, with the results of
// the plain loops bit by bit. g++ 12 reduces each extreme of a bucket by itself, clamps levels as
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
  const VectorInts last = VectorInts{} + (scale.last_level - kRoundingBits) * 0x01010101;
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
