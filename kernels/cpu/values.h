// SPDX-License-Identifier: BSD-3-Clause
// The loops over the encoded values of value codecs (kernels/codecs.h). Included by loops.cpp
// alone.
#pragma once
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/cpu/tiles.h"

namespace slimpi::kernels {
namespace {

template <typename Type>
[[gnu::noinline]] void encode_values(Type type, const float* SLIMPI_RESTRICT from, std::size_t n,
                                     typename Type::Value* SLIMPI_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = encode_value(type, from[i]);
}

template <typename Type>
[[gnu::noinline]] void decode_values(Type type, const typename Type::Value* SLIMPI_RESTRICT from,
                                     std::size_t n, float* SLIMPI_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = decode_value(type, from[i]);
}

template <typename Type>
[[gnu::noinline]] void add_values(Type type, const typename Type::Value* SLIMPI_RESTRICT from,
                                  std::size_t n, float* SLIMPI_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = add(to[i], decode_value(type, from[i]));
}

// to = in + the residual, clamped for this codec.
template <typename Type>
[[gnu::noinline]] void add_residual(Type type, const float* SLIMPI_RESTRICT in,
                                    const float* SLIMPI_RESTRICT residual, std::size_t n,
                                    float* SLIMPI_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i)
    to[i] = add(in[i], clamp_residual(residual[i], spacing(type, in[i])));
}

// fp16 conversions by the CPU's own instructions, kFp16AtOnce elements at a time; on x86-64 they
// take a third of the time of the plain loops. They agree with encode_value() and decode_value()
// except for NaNs, which canonical_floats() replaces by kNanBits. On aarch64 the agreement holds
// only in the default floating-point environment, which float_environment.h sets.
#if defined(__F16C__) || defined(__aarch64__)
#if defined(__F16C__)
constexpr std::size_t kFp16AtOnce = 8;
SLIMPI_HD __m256 canonical_floats(__m256 values) {
  return _mm256_blendv_ps(values, _mm256_castsi256_ps(_mm256_set1_epi32(kNanBits)),
                          _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}
SLIMPI_HD void to_fp16_at_once(const float* from, std::uint16_t* to) {
  const __m256 floats = canonical_floats(_mm256_loadu_ps(from));
  _mm_storeu_si128((__m128i*)to, _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT));
}
SLIMPI_HD __m256 from_fp16_at_once(const std::uint16_t* from) {
  return canonical_floats(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from)));
}
SLIMPI_HD void from_fp16_at_once(const std::uint16_t* from, float* to) {
  _mm256_storeu_ps(to, from_fp16_at_once(from));
}
SLIMPI_HD void add_fp16_at_once(const std::uint16_t* from, float* to) {
  const __m256 sums = _mm256_add_ps(_mm256_loadu_ps(to), from_fp16_at_once(from));
  _mm256_storeu_ps(to, canonical_floats(sums));
}
#else
constexpr std::size_t kFp16AtOnce = 4;
SLIMPI_HD float32x4_t canonical_floats(float32x4_t values) {
  return vbslq_f32(vceqq_f32(values, values), values,
                   vreinterpretq_f32_u32(vdupq_n_u32(kNanBits)));
}
SLIMPI_HD void to_fp16_at_once(const float* from, std::uint16_t* to) {
  const float32x4_t floats = canonical_floats(vld1q_f32(from));
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(floats)));
}
SLIMPI_HD float32x4_t from_fp16_at_once(const std::uint16_t* from) {
  return canonical_floats(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))));
}
SLIMPI_HD void from_fp16_at_once(const std::uint16_t* from, float* to) {
  vst1q_f32(to, from_fp16_at_once(from));
}
SLIMPI_HD void add_fp16_at_once(const std::uint16_t* from, float* to) {
  vst1q_f32(to, canonical_floats(vaddq_f32(vld1q_f32(to), from_fp16_at_once(from))));
}
#endif

[[gnu::noinline]] void encode_values(Fp16 type, const float* SLIMPI_RESTRICT from, std::size_t n,
                                     std::uint16_t* SLIMPI_RESTRICT to) {
  std::size_t i = 0;
  for (; i + kFp16AtOnce <= n; i += kFp16AtOnce) to_fp16_at_once(from + i, to + i);
  for (; i < n; ++i) to[i] = encode_value(type, from[i]);
}
[[gnu::noinline]] void decode_values(Fp16 type, const std::uint16_t* SLIMPI_RESTRICT from,
                                     std::size_t n, float* SLIMPI_RESTRICT to) {
  std::size_t i = 0;
  for (; i + kFp16AtOnce <= n; i += kFp16AtOnce) from_fp16_at_once(from + i, to + i);
  for (; i < n; ++i) to[i] = decode_value(type, from[i]);
}
[[gnu::noinline]] void add_values(Fp16 type, const std::uint16_t* SLIMPI_RESTRICT from,
                                  std::size_t n, float* SLIMPI_RESTRICT to) {
  std::size_t i = 0;
  for (; i + kFp16AtOnce <= n; i += kFp16AtOnce) add_fp16_at_once(from + i, to + i);
  for (; i < n; ++i) to[i] = add(to[i], decode_value(type, from[i]));
}
#endif

// Calls visit(TYPE()) for the TYPE of a value codec (kernels/codecs.h).
template <typename Visit>
void with_value_codec(Codec codec, const Visit& visit) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  if (codec == Codec::name) return visit(Type());
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
}

// The functions above for a codec known only at run time. `data` is the whole encoded segment, and
// `first` the element at which to begin.
void encode_values(Codec codec, const float* from, std::size_t n, std::byte* data) {
  with_value_codec(codec, [&](auto type) {
    encode_values(type, from, n, (typename decltype(type)::Value*)data);
  });
}
void add_residual(Codec codec, const float* in, const float* residual, std::size_t n, float* to) {
  with_value_codec(codec, [&](auto type) { add_residual(type, in, residual, n, to); });
}
void decode_values(Codec codec, const std::byte* data, std::size_t first, std::size_t n,
                   float* to) {
  with_value_codec(codec, [&](auto type) {
    decode_values(type, (const typename decltype(type)::Value*)data + first, n, to);
  });
}
void add_values(Codec codec, const std::byte* data, std::size_t first, std::size_t n, float* to) {
  with_value_codec(codec, [&](auto type) {
    add_values(type, (const typename decltype(type)::Value*)data + first, n, to);
  });
}

}  // namespace
}  // namespace slimpi::kernels
