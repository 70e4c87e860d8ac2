// SPDX-License-Identifier: BSD-3-Clause
// The random streams, and stochastic rounding's guarantees: no bias, the same draws however a
// buffer is cut, other draws for other ranks, calls and seeds.

#include "kernels/cpu/cpu.h"
#include "kernels/math/philox.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

// The known answers that the generator's authors publish.
UNIT_TEST(philox_gives_the_published_numbers) {
  struct Row {
    std::uint32_t counter[4], key[2], expected[4];
  };
  const Row rows[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Row& row : rows) {
    const Block counter = {{row.counter[0], row.counter[1], row.counter[2], row.counter[3]}};
    const Block drawn = philox(counter, row.key[0], row.key[1]);
    for (int w = 0; w < 4; ++w) assert_int_equal(drawn.word[w], row.expected[w]);
  }
}

UNIT_TEST(uniform_numbers_are_below_one) {
  assert_true(uniform(0) == 0.0f);
  assert_true(uniform(0xffffffff) == 1.0f - 0x1p-24f);
  assert_true(uniform(0x80000000) == 0.5f);
}

// A bucket with minimum 0 and unit 1 whose elements are fractions shows the draws: an element is
// rounded up exactly where its number is less than the fraction.
UNIT_TEST(draws_are_those_of_the_stream) {
  constexpr std::size_t kCount = 1000;
  const Format format = quantized(8, 0, true);
  for (const CpuPath which : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
    if (!usable(which)) continue;
    for (const std::uint64_t first : {0u, 1u, 2u, 3u, 4u, 1023u, 0xfffffffeu}) {
      const RandomStream random{0xfedcba9876543210u, 6, 0x123400000005u,
                                first << (first > 9 ? 9 : 0)};
      static float in[kCount], out[kCount];
      static std::byte coded[2 * kCount];
      for (std::size_t i = 0; i < kCount; ++i) in[i] = (float)(mixed(i) % 1000) / 1000;
      in[0] = 0;
      in[1] = 255;
      cpu_kernels(which)->encode(format, random, in, nullptr, kCount, coded, nullptr);
      cpu_kernels(which)->decode(format, coded, kCount, out, nullptr);
      for (std::size_t i = 2; i < kCount; ++i) {
        const std::uint64_t number = random.first + i;
        const float u = uniform(random_block(random, number / 4).word[number % 4]);
        assert_true(out[i] == (u < in[i] ? 1.0f : 0.0f));
      }
    }
  }
}

// The mean of many calls is the input itself, at the ends of the range too.
UNIT_TEST(rounding_has_no_bias) {
  constexpr int kCalls = 4000;
  constexpr std::size_t kCount = 100;
  const Kernels& path = *cpu_kernels(CpuPath::automatic);
  for (const int bits : {1, 2, 4, 8, 12, 16})
    for (const float offset : {0.0f, 3.0f, -100.0f}) {
      const Format format = quantized(bits, 0, true);
      static float in[kCount], out[kCount];
      static double sum[kCount];
      static std::byte coded[4 * kCount];
      for (std::size_t i = 0; i < kCount; ++i) {
        in[i] = offset + bell(31, i);
        sum[i] = 0;
      }
      for (int call = 0; call < kCalls; ++call) {
        path.encode(format, RandomStream{3, 1, (std::uint64_t)call, 0}, in, nullptr, kCount, coded,
                    nullptr);
        path.decode(format, coded, kCount, out, nullptr);
        for (std::size_t i = 0; i < kCount; ++i) sum[i] += out[i];
      }
      float min = in[0], max = in[0];
      for (const float x : in) min = std::fmin(min, x), max = std::fmax(max, x);
      const double step = ((double)max - min) / ((1 << bits) - 1);
      const double rounding = 6 * 0x1p-24 * std::fmax(std::fabs(min), std::fabs(max));
      for (std::size_t i = 0; i < kCount; ++i) {
        const double position = ((double)in[i] - min) / step;
        const double up = position - std::floor(position);
        // The bound is five standard deviations of the mean, and the error of the arithmetic
        // itself.
        const double probability = up * (1 - up) + rounding / step;
        const double allowed = 5 * step * std::sqrt(probability / kCalls) + rounding;
        assert_true(std::fabs(sum[i] / kCalls - in[i]) <= allowed);
      }
    }
}

// Cutting a buffer into other pieces changes neither draws nor bytes, if the buckets stay the same.
UNIT_TEST(pieces_draw_what_the_whole_draws) {
  constexpr std::size_t kCount = 640;
  static float in[kCount];
  static std::byte whole[4 * kCount], pieces[4 * kCount];
  for (std::size_t i = 0; i < kCount; ++i) in[i] = bell(32, i);
  const Kernels& path = *cpu_kernels(CpuPath::automatic);
  for (int bits = 1; bits <= kMostBits; ++bits) {
    const Format format = quantized(bits, 64, true);
    RandomStream random{11, 2, 5, 1000};
    path.encode(format, random, in, nullptr, kCount, whole, nullptr);
    std::byte* out = pieces;
    for (std::size_t first = 0; first < kCount; first += 128) {
      random.first = 1000 + first;
      path.encode(format, random, in + first, nullptr, 128, out, nullptr);
      out += encoded_bytes(format, 128);
    }
    assert_memory_equal(pieces, whole, encoded_bytes(format, kCount));
  }
}

UNIT_TEST(ranks_calls_and_seeds_draw_differently) {
  constexpr std::size_t kCount = 4096;
  static float in[kCount];
  static std::byte first[2 * kCount], second[2 * kCount];
  for (std::size_t i = 0; i < kCount; ++i) in[i] = bell(33, i);
  const Kernels& path = *cpu_kernels(CpuPath::automatic);
  const Format format = quantized(1, 0, true);
  const RandomStream draws[] = {
      {1, 1, 1, 0},          {2, 1, 1, 0},          {1, 2, 1, 0},
      {1, 1, 2, 0},          {1, 1, 1, 4},          {1, 1, 1, 1},
      {1ull << 32, 1, 1, 0}, {1, 1, 1ull << 32, 0}, {1, 1, 1, 1ull << 34}};
  for (const RandomStream& a : draws)
    for (const RandomStream& b : draws) {
      if (&a == &b) continue;
      path.encode(format, a, in, nullptr, kCount, first, nullptr);
      path.encode(format, b, in, nullptr, kCount, second, nullptr);
      int different = 0;
      for (std::size_t i = 8; i < encoded_bytes(format, kCount); ++i)
        different += __builtin_popcount((unsigned)(first[i] ^ second[i]));
      // Between a quarter and three quarters of the elements must differ; about p (1 - p) * 2 of
      // them are expected.
      assert_in_range(different, kCount / 4, kCount * 3 / 4);
    }
}

}  // namespace
