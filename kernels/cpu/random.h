// SPDX-License-Identifier: BSD-3-Clause
// Computes ranges of the random streams of stochastic rounding, several Philox blocks at a time.
// Included by loops.cpp alone.
//
// Runs the generator of kernels/math/philox.h with one block per 64-bit lane. Only the low 32 bits
// of a lane are used between rounds, because x86-64 and aarch64 have instructions that multiply
// these. The vectors are explicit because GCC does not vectorize philox(), which was eight times
// slower on x86-64.
#pragma once
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/math/philox.h"

namespace slimpi::kernels {
namespace {

#if defined(__AVX512F__)
typedef std::uint64_t WordLanes __attribute__((vector_size(64)));
SLIMPI_HD WordLanes multiply_low(WordLanes a, WordLanes b) {
  // The mask avoids a warning of GCC 12 about its own header (GCC bug 105593).
  return (WordLanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
typedef std::uint64_t WordLanes __attribute__((vector_size(32)));
SLIMPI_HD WordLanes multiply_low(WordLanes a, WordLanes b) {
  return (WordLanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#elif defined(__SSE2__)
typedef std::uint64_t WordLanes __attribute__((vector_size(16)));
SLIMPI_HD WordLanes multiply_low(WordLanes a, WordLanes b) {
  return (WordLanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
#elif defined(__aarch64__)
typedef std::uint64_t WordLanes __attribute__((vector_size(16)));
SLIMPI_HD WordLanes multiply_low(WordLanes a, WordLanes b) {
  return (WordLanes)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
}
#else
typedef std::uint64_t WordLanes __attribute__((vector_size(16)));
SLIMPI_HD WordLanes multiply_low(WordLanes a, WordLanes b) {
  return (a & 0xffffffff) * (b & 0xffffffff);
}
#endif

constexpr int kLanes = sizeof(WordLanes) / sizeof(std::uint64_t);
constexpr std::size_t kDrawnAtOnce = 4 * kLanes;

// How many words the buffer of random_words() must have beyond the n words that are asked for.
constexpr std::size_t kRandomSlack = kDrawnAtOnce + 3;

// Computes the blocks whose numbers are in the lanes of `block`, and writes them to words[0 ..
// kDrawnAtOnce - 1]: first the blocks of the even lanes, then those of the odd lanes. `even` has
// the indices for the shuffle that picks the even lanes.
SLIMPI_HD void random_blocks(const RandomStream& random, WordLanes block, WordLanes even,
                             std::uint32_t* words) {
  const std::uint64_t call_high = (random.call >> 32 & 0xffff) << 16;
  WordLanes a = block, b = (block >> 32 & 0xffff) | call_high;
  WordLanes c = WordLanes{} + random.rank, d = WordLanes{} + (std::uint32_t)random.call;
  auto key0 = (std::uint32_t)random.seed, key1 = (std::uint32_t)(random.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const WordLanes first = multiply_low(a, WordLanes{} + kPhiloxMultiplier0);
    const WordLanes second = multiply_low(c, WordLanes{} + kPhiloxMultiplier1);
    a = second >> 32 ^ b ^ key0;
    b = second;
    c = first >> 32 ^ d ^ key1;
    d = first;
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  const WordLanes ab = (a & 0xffffffff) | b << 32, cd = (c & 0xffffffff) | d << 32;
  const WordLanes low = __builtin_shuffle(ab, cd, even), high = __builtin_shuffle(ab, cd, even + 1);
  __builtin_memcpy(words, &low, sizeof low);
  __builtin_memcpy(words + 2 * kLanes, &high, sizeof high);
}

// Returns numbers first .. first + n - 1 of the stream. The result points into `words`, which must
// hold n + kRandomSlack words.
const std::uint32_t* random_words(const RandomStream& shared_draw, std::uint64_t first,
                                  std::size_t n, std::uint32_t* words) {
  const RandomStream random = shared_draw;
  const std::size_t skip = first % 4;
  // With k lanes, lane 0, 1, 2, ... compute blocks 0, k/2, 1, k/2 + 1, .... Interleaving pairs of
  // lanes once then yields the words in the order of the stream.
  WordLanes block, even;
  for (int lane = 0; lane < kLanes; ++lane) {
    block[lane] = first / 4 + (std::uint64_t)(lane / 2 + lane % 2 * (kLanes / 2));
    even[lane] = (std::uint64_t)(lane / 2 * 2 + lane % 2 * kLanes);
  }
  for (std::size_t i = 0; i < skip + n; i += kDrawnAtOnce) {
    random_blocks(random, block, even, words + i);
    block += kLanes;
  }
  return words + skip;
}

}  // namespace
}  // namespace slimpi::kernels
