// SPDX-License-Identifier: BSD-3-Clause
// Bucket loops of the packed codec in x86 vector instructions, with the same results as the plain
// loops. The instructions are explicit, because g++ 12 compiles the plain loops to about twice as
// many: it reduces each extreme separately, clamps levels as 32-bit integers, and masks levels
// before it narrows them to bytes. Included by loops.cpp alone.
#pragma once
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstring>

#include "kernels/cpu/packing.h"
#include "kernels/math/packed.h"

namespace slimpi::kernels {
namespace {

// BucketExtremes without default values, so that an array of them is not initialized.
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
constexpr std::size_t kInts = kVector / sizeof(std::int32_t);  // 32-bit integers per vector

// Clamps the integers of four vectors to 0 .. last and narrows them to the bytes of one vector. All
// bytes of `last` are equal.
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

// Rounds the values of a bucket to levels of up to 8 bits.
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

// decode_any() decodes a bucket of any width up to 8 bits without a branch on the width: the width
// changes from bucket to bucket, so a CPU would often mispredict this branch. Instead, bits that
// the width does not have are masked off.
#if defined(__AVX2__)
constexpr bool kAnyWidth = true;
// The float with the bits kByteBaseBits | byte << 8 is kByteBase + byte.
constexpr float kByteBase = 0x1p15f;
constexpr std::uint32_t kByteBaseBits = 0x47000000;
typedef std::uint64_t VectorWords [[gnu::vector_size(kVector)]];

// Returns a vector that repeats the `bytes` bytes at `from`. The load itself repeats them, because
// a shuffle or a broadcast would occupy the execution port that unpacking needs.
#if defined(__AVX512BW__)
constexpr VectorWords kWord = {0, 1, 2, 3, 4, 5, 6, 7};
template <std::size_t bytes>
SLIMPI_HD VectorWords repeat(const std::byte* from) {
  if constexpr (bytes == 64) return (VectorWords)_mm512_loadu_si512(from);
  if constexpr (bytes == 32)
    return (VectorWords)_mm512_maskz_broadcast_i64x4(0xff,
                                                     _mm256_loadu_si256((const __m256i*)from));
  if constexpr (bytes == 16)
    return (VectorWords)_mm512_maskz_broadcast_i32x4(0xffff, _mm_loadu_si128((const __m128i*)from));
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return VectorWords{} + word;
}
// Converts each byte b to the float kByteBase + b. Every 16-bit lane of `base` holds the upper half
// of the bits of kByteBase.
SLIMPI_HD void to_floats(VectorWords bytes, VectorWords base, VectorFloats (&floats)[4]) {
  const VectorInts order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto quarters = (__m512i)__builtin_shuffle((VectorInts)bytes, order);
  const __m512i zero = _mm512_setzero_si512(), upper = (__m512i)base;
  const __m512i low = _mm512_unpacklo_epi8(zero, quarters);
  const __m512i high = _mm512_unpackhi_epi8(zero, quarters);
  floats[0] = (VectorFloats)_mm512_unpacklo_epi16(low, upper);
  floats[1] = (VectorFloats)_mm512_unpackhi_epi16(low, upper);
  floats[2] = (VectorFloats)_mm512_unpacklo_epi16(high, upper);
  floats[3] = (VectorFloats)_mm512_unpackhi_epi16(high, upper);
}
SLIMPI_HD bool has_nan(const VectorFloats (&four)[4]) {
  return (_mm512_cmp_ps_mask((__m512)four[0], (__m512)four[1], _CMP_UNORD_Q) |
          _mm512_cmp_ps_mask((__m512)four[2], (__m512)four[3], _CMP_UNORD_Q)) != 0;
}
#else
constexpr VectorWords kWord = {0, 1, 2, 3};
template <std::size_t bytes>
SLIMPI_HD VectorWords repeat(const std::byte* from) {
  if constexpr (bytes >= 32) return (VectorWords)_mm256_loadu_si256((const __m256i*)from);
  if constexpr (bytes == 16)
    return (VectorWords)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)from));
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return VectorWords{} + word;
}
SLIMPI_HD void to_floats(VectorWords bytes, VectorWords base, VectorFloats (&floats)[4]) {
  const VectorInts order = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto quarters = (__m256i)__builtin_shuffle((VectorInts)bytes, order);
  const __m256i zero = _mm256_setzero_si256(), upper = (__m256i)base;
  const __m256i low = _mm256_unpacklo_epi8(zero, quarters);
  const __m256i high = _mm256_unpackhi_epi8(zero, quarters);
  floats[0] = (VectorFloats)_mm256_unpacklo_epi16(low, upper);
  floats[1] = (VectorFloats)_mm256_unpackhi_epi16(low, upper);
  floats[2] = (VectorFloats)_mm256_unpacklo_epi16(high, upper);
  floats[3] = (VectorFloats)_mm256_unpackhi_epi16(high, upper);
}
SLIMPI_HD bool has_nan(const VectorFloats (&four)[4]) {
  const __m256 first = _mm256_cmp_ps((__m256)four[0], (__m256)four[1], _CMP_UNORD_Q);
  const __m256 second = _mm256_cmp_ps((__m256)four[2], (__m256)four[3], _CMP_UNORD_Q);
  return _mm256_movemask_ps(_mm256_or_ps(first, second)) != 0;
}
#endif

// Writes `bytes` bytes, a divisor of the vector's length: byte i is the OR of bytes i, i + bytes, i
// + 2 * bytes, ... of `words`.
template <std::size_t bytes, typename Vector>
SLIMPI_HD void store_folded(Vector words, std::byte* to) {
  if constexpr (sizeof words == bytes) {
    std::memcpy(to, &words, sizeof words);
  } else if constexpr (sizeof words == 64) {
    store_folded<bytes>(__builtin_shufflevector(words, words, 0, 1, 2, 3) |
                            __builtin_shufflevector(words, words, 4, 5, 6, 7),
                        to);
  } else if constexpr (sizeof words == 32) {
    store_folded<bytes>(
        __builtin_shufflevector(words, words, 0, 1) | __builtin_shufflevector(words, words, 2, 3),
        to);
  } else {
    const Vector both = words | __builtin_shufflevector(words, words, 1, 1);
    std::memcpy(to, &both, bytes);
  }
}

// The constants with which decode_any() decodes one width, as whole vectors, so that no broadcasts
// are needed. `eights`, `fours`, `twos` and `ones` are the 8-, 4-, 2- and 1-bit pieces of a level
// (kernels/math/packed.h).
struct AnyWidth {
  VectorWords eights, fours, twos, ones;  // mask the bits of each piece in each level
  VectorWords twos_shift, ones_shift;     // the lowest bit of each piece in a level
  VectorWords base;                       // for to_floats(); the same for all widths
  std::uint32_t twos_at, ones_at;         // where these pieces begin in the bucket, in bytes
  float origin[2];                        // kByteBase + the level that stands for 0, by side
};
constexpr auto kWidths = [] {
  struct {
    AnyWidth of[kBits<Narrow> + 1];
  } widths{};
  constexpr VectorWords each = VectorWords{} + 0x0101010101010101u;
  for (std::uint32_t width = 0; width <= kBits<Narrow>; ++width) {
    const std::uint32_t four = width & 4, six = width & 6, half = (1u << width) / 2;
    AnyWidth& any = widths.of[width];
    any.eights = (width & 8) / 8 * 0xff * each;
    any.fours = four / 4 * 0xf * each;
    any.twos = (width & 2) / 2 * 3 * each << four;
    any.ones = (width & 1) * each << six;
    any.twos_shift = VectorWords{} + four;
    any.ones_shift = VectorWords{} + six;
    any.base = VectorWords{} + (kByteBaseBits >> 16) * 0x0001000100010001u;
    any.twos_at = four * kUnitBytes;
    any.ones_at = six * kUnitBytes;
    any.origin[0] = kByteBase + (float)(half == 0 ? 0 : half - 1);
    any.origin[1] = kByteBase + (float)half;
  }
  return widths;
}();

// Decodes a bucket to `to`; with `adds`, to = sum + values, and `to` may be `sum`. `step` must be
// finite. Reads kPackedBucket bytes at `in`, whatever the width.
template <bool adds>
SLIMPI_HD void decode_any(float step, bool negative, std::uint32_t width, const std::byte* in,
                          const float* sum, float* to) {
  const AnyWidth& any = kWidths.of[width];
  const VectorWords fours = repeat<32>(in), twos = repeat<16>(in + any.twos_at);
  const VectorWords ones = repeat<8>(in + any.ones_at);
#pragma GCC unroll 2
  for (std::size_t i = 0; i < kPackedBucket; i += kVector) {
    const VectorWords word = kWord + i / 8;
    const VectorWords levels = (repeat<kVector>(in + i) & any.eights) |
                               (fours >> (word >> 2) * 4 & any.fours) |
                               (twos >> (word >> 1) * 2 << any.twos_shift & any.twos) |
                               (ones >> word << any.ones_shift & any.ones);
    VectorFloats values[4];
    to_floats(levels, any.base, values);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      values[k] = (values[k] - any.origin[negative]) * step;
      if constexpr (adds) {
        VectorFloats before;
        std::memcpy(&before, sum + i + k * kInts, sizeof before);
        values[k] += before;
      }
      std::memcpy(to + i + k * kInts, &values[k], sizeof values[k]);
    }
    if (adds && has_nan(values)) [[unlikely]]
      for (std::size_t j = i; j < i + kVector; ++j) to[j] = canonical(to[j]);
  }
}

// Writes the low `bits` bits, 1 to 7, of 64 levels, in the pieces of kernels/math/packed.h.
template <int bits>
SLIMPI_HD void pack_low(const Narrow* bytes, std::byte* out) {
  constexpr std::uint64_t each = 0x0101010101010101u;
  VectorWords fours{}, twos{}, ones{};
#pragma GCC unroll 2
  for (std::size_t i = 0; i < kPackedBucket; i += kVector) {
    const VectorWords word = kWord + i / 8;
    VectorWords levels;
    std::memcpy(&levels, bytes + i, sizeof levels);
    fours |= (levels & 0xf * each) << (word >> 2) * 4;
    twos |= (levels >> (bits & 4) & 3 * each) << (word >> 1) * 2;
    ones |= (levels >> (bits & 6) & each) << word;
  }
  if constexpr ((bits & 4) != 0) store_folded<32>(fours, out);
  if constexpr ((bits & 2) != 0) store_folded<16>(twos, out + (bits & 4) * kUnitBytes);
  if constexpr ((bits & 1) != 0) store_folded<8>(ones, out + (bits & 6) * kUnitBytes);
}
#else
constexpr bool kAnyWidth = false;
template <bool adds>
SLIMPI_HD void decode_any(float, bool, std::uint32_t, const std::byte*, const float*, float*) {}
#endif

// bucket_extremes() returns the extremes of a bucket. This file is compiled once for each
// instruction set. The generic build uses a plain loop here, because vectors have minima and maxima
// of 32-bit integers only from SSE4.1 on, and there is no build for SSE4.1.
#if defined(__AVX2__)
// The vectors have 32 bytes, because a CPU computes either two maxima of 32 bytes at a time or one
// of 64.
typedef std::uint32_t EightUnsigned [[gnu::vector_size(32)]];
typedef std::int32_t EightInts [[gnu::vector_size(32)]];
typedef std::int32_t FourInts [[gnu::vector_size(16)]];

template <typename Vector>
SLIMPI_HD Vector greater(Vector a, Vector b) {
  return a > b ? a : b;
}

SLIMPI_HD FoundExtremes bucket_extremes(const float* from) {
  EightInts bits, high;
  std::memcpy(&high, from, sizeof high);
  auto low = (EightUnsigned)high;
#pragma GCC unroll 8
  for (std::size_t i = 8; i < kPackedBucket; i += 8) {
    std::memcpy(&bits, from + i, sizeof bits);
    high = greater(high, bits);
    low = greater(low, (EightUnsigned)bits);
  }
  // With its highest bit inverted, an unsigned number sorts like a signed one, so one signed
  // maximum reduces `high` and `low` together, in alternating lanes.
  const EightInts turned = (EightInts)low ^ INT32_MIN;
  const EightInts half = greater(__builtin_shufflevector(high, turned, 0, 8, 1, 9, 4, 12, 5, 13),
                                 __builtin_shufflevector(high, turned, 2, 10, 3, 11, 6, 14, 7, 15));
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
