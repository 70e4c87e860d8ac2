// SPDX-License-Identifier: BSD-3-Clause
// Loops over fp16 and bf16 values. Included by loops.cpp alone.
#pragma once
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "kernels/cpu/tiles.h"
#include "kernels/math/float16.h"

namespace slimpi::kernels {
namespace {

// The processor's own conversions give what to_fp16() and from_fp16() give, except for NaN, in a
// third of the time. Both convert 8 elements at once.
#if defined(__F16C__)
constexpr std::size_t kHalvesAtOnce = 8;
SLIMPI_HD __m256 canonical8(__m256 values) {
  return _mm256_blendv_ps(values, _mm256_castsi256_ps(_mm256_set1_epi32(kNanBits)),
                          _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}
SLIMPI_HD void to_fp16_at_once(const float* from, std::uint16_t* to) {
  _mm_storeu_si128((__m128i*)to,
                   _mm256_cvtps_ph(canonical8(_mm256_loadu_ps(from)), _MM_FROUND_TO_NEAREST_INT));
}
SLIMPI_HD __m256 from_fp16_at_once(const std::uint16_t* from) {
  return canonical8(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from)));
}
SLIMPI_HD void from_fp16_at_once(const std::uint16_t* from, float* to) {
  _mm256_storeu_ps(to, from_fp16_at_once(from));
}
SLIMPI_HD void add_fp16_at_once(const std::uint16_t* from, float* to) {
  _mm256_storeu_ps(to, canonical8(_mm256_add_ps(_mm256_loadu_ps(to), from_fp16_at_once(from))));
}
#else
constexpr std::size_t kHalvesAtOnce = 1;
SLIMPI_HD void to_fp16_at_once(const float* from, std::uint16_t* to) {
  *to = to_fp16(*from);
}
SLIMPI_HD void from_fp16_at_once(const std::uint16_t* from, float* to) {
  *to = from_fp16(*from);
}
SLIMPI_HD void add_fp16_at_once(const std::uint16_t* from, float* to) {
  *to = add(*to, from_fp16(*from));
}
#endif

void to_float16(Codec codec, const float* SLIMPI_RESTRICT from, std::size_t n,
                std::uint16_t* SLIMPI_RESTRICT to) {
  std::size_t i = 0;
  if (codec == Codec::bf16) {
    for (; i < n; ++i) to[i] = to_bf16(from[i]);
    return;
  }
  for (; i + kHalvesAtOnce <= n; i += kHalvesAtOnce) to_fp16_at_once(from + i, to + i);
  for (; i < n; ++i) to[i] = to_fp16(from[i]);
}

void from_float16(Codec codec, const std::uint16_t* SLIMPI_RESTRICT from, std::size_t n,
                  float* SLIMPI_RESTRICT to) {
  std::size_t i = 0;
  if (codec == Codec::bf16) {
    for (; i < n; ++i) to[i] = from_bf16(from[i]);
    return;
  }
  for (; i + kHalvesAtOnce <= n; i += kHalvesAtOnce) from_fp16_at_once(from + i, to + i);
  for (; i < n; ++i) to[i] = from_fp16(from[i]);
}

// to += the fp16 or bf16 values.
void add_16_bit_floats(Codec codec, const std::uint16_t* SLIMPI_RESTRICT from, std::size_t n,
                       float* SLIMPI_RESTRICT to) {
  std::size_t i = 0;
  if (codec == Codec::bf16) {
    for (; i < n; ++i) to[i] = add(to[i], from_bf16(from[i]));
    return;
  }
  for (; i + kHalvesAtOnce <= n; i += kHalvesAtOnce) add_fp16_at_once(from + i, to + i);
  for (; i < n; ++i) to[i] = add(to[i], from_fp16(from[i]));
}

}  // namespace
}  // namespace slimpi::kernels
