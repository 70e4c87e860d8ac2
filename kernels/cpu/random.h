// SPDX-License-Identifier: BSD-3-Clause
// Ranges of the random streams, several Philox blocks at a time. Included by loops.cpp alone.
//
// The generator of kernels/math/philox.h, with one block per 64-bit lane: only the low 16-bit
// floats of the lanes count, and the multiplication of low 16-bit floats that every x86 has does
// the rest. GCC does not find it by itself; written out it draws eight times as fast.
#pragma once
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/math/philox.h"

namespace slimpi::kernels {
namespace {

#if defined(__AVX512F__)
typedef std::uint64_t CopyStreams __attribute__((vector_size(64)));
SLIMPI_HD CopyStreams multiply_low(CopyStreams a, CopyStreams b) {
  // Without a mask GCC 12 warns of a value in its own header (its bug 105593).
  return (CopyStreams)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
typedef std::uint64_t CopyStreams __attribute__((vector_size(32)));
SLIMPI_HD CopyStreams multiply_low(CopyStreams a, CopyStreams b) {
  return (CopyStreams)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#elif defined(__SSE2__)
typedef std::uint64_t CopyStreams __attribute__((vector_size(16)));
SLIMPI_HD CopyStreams multiply_low(CopyStreams a, CopyStreams b) {
  return (CopyStreams)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
#else
typedef std::uint64_t CopyStreams __attribute__((vector_size(16)));
SLIMPI_HD CopyStreams multiply_low(CopyStreams a, CopyStreams b) {
  return (a & 0xffffffff) * (b & 0xffffffff);
}
#endif

constexpr int kLanes = sizeof(CopyStreams) / sizeof(std::uint64_t);
constexpr std::size_t kDrawnAtOnce = 4 * kLanes;

// What a buffer must hold beyond the words that are asked for.
constexpr std::size_t kDrawSlack = kDrawnAtOnce + 3;

// The blocks with the numbers in `block`, into words[0 .. kDrawnAtOnce - 1]: those of the even
// lanes first, then those of the odd ones.
SLIMPI_HD void draw_at_once(const RandomStream& random, CopyStreams block, CopyStreams even,
                            std::uint32_t* words) {
  const std::uint64_t call_high = (random.call >> 32 & 0xffff) << 16;
  CopyStreams a = block, b = (block >> 32 & 0xffff) | call_high;
  CopyStreams c = CopyStreams{} + random.rank, d = CopyStreams{} + (std::uint32_t)random.call;
  auto key0 = (std::uint32_t)random.seed, key1 = (std::uint32_t)(random.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const CopyStreams first = multiply_low(a, CopyStreams{} + kPhiloxMultiplier0);
    const CopyStreams second = multiply_low(c, CopyStreams{} + kPhiloxMultiplier1);
    a = second >> 32 ^ b ^ key0;
    b = second;
    c = first >> 32 ^ d ^ key1;
    d = first;
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  const CopyStreams ab = (a & 0xffffffff) | b << 32, cd = (c & 0xffffffff) | d << 32;
  const CopyStreams low = __builtin_shuffle(ab, cd, even),
                    high = __builtin_shuffle(ab, cd, even + 1);
  __builtin_memcpy(words, &low, sizeof low);
  __builtin_memcpy(words + 2 * kLanes, &high, sizeof high);
}

// Numbers first .. first + n - 1 of the stream; they lie at the returned place in `words`, which
// has room for n + kDrawSlack.
const std::uint32_t* draw_words(const RandomStream& shared_draw, std::uint64_t first, std::size_t n,
                                std::uint32_t* words) {
  const RandomStream random = shared_draw;
  const std::size_t skip = first % 4;
  // The lanes take blocks 0, k/2, 1, k/2 + 1, ... of each k, so that one interleaving of pairs of
  // lanes brings the words into the order of the stream.
  CopyStreams block, even;
  for (int lane = 0; lane < kLanes; ++lane) {
    block[lane] = first / 4 + (std::uint64_t)(lane / 2 + lane % 2 * (kLanes / 2));
    even[lane] = (std::uint64_t)(lane / 2 * 2 + lane % 2 * kLanes);
  }
  for (std::size_t i = 0; i < skip + n; i += kDrawnAtOnce) {
    draw_at_once(random, block, even, words + i);
    block += kLanes;
  }
  return words + skip;
}

}  // namespace
}  // namespace slimpi::kernels
