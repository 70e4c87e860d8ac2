// SPDX-License-Identifier: BSD-3-Clause
// The quantizer against its description: error bounds, zeros, constants, extreme ranges, marks.
#include "kernels/math/quantizer.h"

#include <cfloat>
#include <functional>

#include "kernels/cpu/cpu.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/oracle.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

Arena g_in, g_coded, g_out;
const Kernels* g_kernels = cpu_kernels(CpuPath::generic);

using Maker = std::function<float(std::size_t)>;

// Checks a bucket with infinities: each infinity stays an infinity, and finite values keep the
// bound of the levels between.
void check_infinite(const Format& format, const float* in, const float* out, std::size_t count) {
  float min = 0, max = 0;
  bool below = false, above = false, any = false;
  for (std::size_t i = 0; i < count; ++i)
    if (std::isfinite(in[i])) {
      min = any ? std::fmin(min, in[i]) : in[i];
      max = any ? std::fmax(max, in[i]) : in[i];
      any = true;
    } else {
      (in[i] > 0 ? above : below) = true;
    }
  const double range = (double)max - (double)min;
  const double step = format.bits == 1 ? 2 * range : range / (double)((1 << format.bits) - 3);
  for (std::size_t i = 0; i < count; ++i) {
    if (format.bits == 1 && below && above)
      assert_int_equal(to_bits(out[i]), 0x7fc00000);
    else if (!std::isfinite(in[i]))
      assert_true(out[i] == in[i]);
    else
      assert_true(std::fabs((double)out[i] - (double)in[i]) <=
                  step * (format.stochastic ? 1.000001 : 0.500001) +
                      0x1p-23 * std::fabs((double)in[i]) + 0x1p-149);
    if (in[i] == 0 && !format.stochastic && !(format.bits == 1 && below && above))
      assert_int_equal(to_bits(out[i]), 0);
  }
}

// Encodes and decodes `count` elements in memory that ends at a page that may not be touched (or
// begins after one), and checks each element against the oracle. Returns the decoded elements.
const float* check(const Format& format, std::size_t count, bool at_end, const Maker& make) {
  float* in = g_in.take<float>(count, at_end);
  for (std::size_t i = 0; i < count; ++i) in[i] = make(i);
  const std::uint64_t before = hash(in, 4 * count);
  const std::size_t bytes = encoded_bytes(format, count);
  auto* coded = g_coded.take<std::byte>(bytes, at_end);
  float* out = g_out.take<float>(count, at_end);
  g_kernels->encode(format, RandomStream{7, 1, 2, 0}, in, nullptr, count, coded, nullptr);
  g_kernels->decode(format, coded, count, out, nullptr);
  assert_true(g_coded.intact() && g_out.intact() && hash(in, 4 * count) == before);
  for (const OracleBucket& bucket : oracle_buckets(coded, format.bits, format.bucket, count)) {
    const std::size_t used = (bucket.count * format.bits + 7) / 8;
    for (std::size_t i = used; i < bucket.packed_bytes; ++i) assert_int_equal(bucket.packed[i], 0);
    float min = INFINITY, max = -INFINITY;
    bool finite = true, nan = false;
    for (std::size_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
      finite = finite && std::isfinite(in[i]);
      nan = nan || std::isnan(in[i]);
      min = std::fmin(min, in[i]);
      max = std::fmax(max, in[i]);
    }
    if (!finite && !nan) {
      check_infinite(format, in + bucket.first, out + bucket.first, bucket.count);
      continue;
    }
    if (!finite) {
      assert_int_equal(to_bits(bucket.min), 0x7fc00000);
      assert_int_equal(to_bits(bucket.max), 0x7fc00000);
      for (std::size_t i = 0; i < bucket.packed_bytes; ++i) assert_int_equal(bucket.packed[i], 0);
      for (std::size_t i = 0; i < bucket.count; ++i)
        assert_int_equal(to_bits(out[bucket.first + i]), 0x7fc00000);
      continue;
    }
    assert_true(bucket.min == min && bucket.max == max);
    assert_int_not_equal(to_bits(bucket.min), 0x80000000);
    assert_int_not_equal(to_bits(bucket.max), 0x80000000);
    const long double bound = error_bound(bucket, format.stochastic);
    const long double rounding = bound - bucket.step / (format.stochastic ? 1 : 2);
    for (std::size_t i = 0; i < bucket.count; ++i) {
      const float x = in[bucket.first + i], back = out[bucket.first + i];
      assert_true(std::isfinite(back));
      const unsigned q = bucket.level(format.bits, i);
      // The outermost levels of a huge bucket lie beyond the greatest float.
      if (fabsf(back) != FLT_MAX)
        assert_true(bucket.distance(format.bits, format.stochastic, q, back) <= rounding);
      const long double error = fabsl((long double)back - x);
      if (error > bound)
        print_error("bits %d bucket %u count %zu element %zu: %a became %a, off by %Lg of %Lg\n",
                    format.bits, format.bucket, count, i, (double)x, (double)back, error, bound);
      assert_true(error <= bound);
      assert_int_not_equal(to_bits(back), 0x80000000);
      if (x == 0 && !format.stochastic) assert_int_equal(to_bits(back), 0);
      if (min == max) assert_true(back == x);
    }
  }
  return out;
}

void check_all(const Maker& make) {
  bool at_end = false;
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const std::uint32_t bucket : kBuckets)
      for (const std::size_t count : kLengths)
        for (const bool stochastic : {false, true})
          check(quantized(bits, bucket, stochastic), count, at_end = !at_end, make);
}

// Checks every width, for one bucket of values.
void check_widths(const Maker& make) {
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const bool stochastic : {false, true})
      check(quantized(bits, 0, stochastic), 257, true, make);
}

UNIT_TEST(ordinary_values_keep_the_bound) {
  check_all([](std::size_t i) { return bell(1, i); });
}

UNIT_TEST(zeros_stay_zeros) {
  check_all([](std::size_t i) {
    return i % 3 == 0 ? bell(2, i) : i % 3 == 1 ? 0.0f : from_bits(0x80000000);
  });
  check_widths([](std::size_t i) { return i % 2 == 0 ? 0.0f : 1.0f; });
  check_widths([](std::size_t i) { return i % 2 == 0 ? from_bits(0x80000000) : -1.0f; });
  check_widths([](std::size_t i) { return i % 2 == 0 ? 0.0f : -1e-40f; });
  check_widths([](std::size_t i) { return i % 3 == 0 ? 0.0f : i % 3 == 1 ? -FLT_MAX : FLT_MAX; });
}

UNIT_TEST(one_sign_keeps_the_bound) {
  check_widths([](std::size_t i) { return 3.0f + bell(3, i); });
  check_widths([](std::size_t i) { return -3.0f + bell(3, i); });
}

UNIT_TEST(constants_are_exact) {
  for (const float value : {0.0f, 1.0f, -1.0f, 0.1f, 1e30f, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-40f,
                            -1e-40f, from_bits(1), from_bits(0x80000001)})
    check_widths([=](std::size_t) { return value; });
  for (int bits = 1; bits <= kMostBits; ++bits)
    for (const bool stochastic : {false, true}) {
      const float* out = check(quantized(bits, 64, stochastic), 200, true,
                               [](std::size_t) { return from_bits(0x80000000); });
      for (int i = 0; i < 200; ++i) assert_int_equal(to_bits(out[i]), 0);
    }
}

UNIT_TEST(tiny_ranges_keep_the_bound) {
  for (const std::uint32_t step : {1u, 2u, 3u, 100u, 1000u, 0x7fffu, 0x7fffffu})
    check_widths([=](std::size_t i) { return from_bits((std::uint32_t)(mixed(i) % (step + 1))); });
  for (const float scale :
       {1e-45f, 1e-40f, 1e-38f, 1e-37f, 0x1p-110f, 0x1p-101f, 0x1p-100f, 1e-30f})
    check_widths([=](std::size_t i) { return scale * bell(4, i); });
  // Each number is next to a large one: the range is a few units in the last place.
  check_widths([](std::size_t i) { return from_bits(0x4b000000 + (std::uint32_t)(i % 5)); });
}

UNIT_TEST(huge_ranges_keep_the_bound) {
  for (const float scale : {0x1p98f, 0x1p99f, 0x1p100f, 0x1p101f, 0x1p120f, 0x1p126f})
    check_widths([=](std::size_t i) { return scale * bell(5, i); });
  check_widths([](std::size_t i) { return i % 2 == 0 ? FLT_MAX : -FLT_MAX; });
  check_widths([](std::size_t i) { return FLT_MAX * ((float)(i % 257) / 128 - 1); });
  check_widths([](std::size_t i) { return FLT_MAX * ((float)(i % 257) / 256); });
  check_widths([](std::size_t i) { return -FLT_MAX * ((float)(i % 257) / 256); });
  check_widths([](std::size_t i) { return i % 2 == 0 ? FLT_MAX : nextafterf(FLT_MAX, 0); });
  check_widths([](std::size_t i) { return i == 0 ? FLT_MAX : i == 1 ? -FLT_MAX : bell(6, i); });
}

UNIT_TEST(far_offsets_keep_the_bound) {
  // 66000 is where levels counted from zero no longer fit: the greatest would wrap to the least.
  for (const float offset : {100.0f, 66000.0f, 1e6f, 1e7f, 1e30f, -66000.0f, -1e6f})
    for (const float range : {1.0f, 1e-3f})
      check_widths([=](std::size_t i) { return offset + range * (float)(i % 257) / 256; });
}

// If floats are spaced wider than the levels, nothing is lost.
UNIT_TEST(levels_finer_than_floats_are_exact) {
  const float* out =
      check(quantized(8, 0), 257, true, [](std::size_t i) { return 1e6f + (float)(i % 17) / 16; });
  for (std::size_t i = 0; i < 257; ++i) assert_true(out[i] == 1e6f + (float)(i % 17) / 16);
}

// Values half-way between levels and just beside it, and next to the ends: the clamp on both sides.
UNIT_TEST(ties_and_ends_keep_the_bound) {
  for (int bits = 1; bits <= kMostBits; ++bits) {
    const int top = (1 << bits) - 1, tested = top < 255 ? top : 1020;
    for (const float low : {-0.5f, -1.0f, 0.0f, 0.3f, -0.7f, 5.0f, -9.0f})
      for (const float step : {1.0f, 0.1f, 0.37f})
        check(quantized(bits, 0), (std::size_t)(4 * tested + 4), true, [=](std::size_t i) {
          const float level = (float)((int)(i / 4) * (top / tested));
          const float x = low + step * (level + 0.5f);
          const float end = low + step * (float)top;
          if (i < 4) return i % 2 == 0 ? low : end;
          return i % 4 == 0   ? x
                 : i % 4 == 1 ? nextafterf(x, low)
                 : i % 4 == 2 ? nextafterf(x, end)
                              : nextafterf(end, low);
        });
  }
}

// Tests infinities in every way: of one or both signs, beside all kinds of values, and all values
// infinite.
UNIT_TEST(infinities_stay_single) {
  for (int kind = 0; kind < 12; ++kind)
    check_all([=](std::size_t i) {
      const float infinity = kind % 3 == 2 && i % 2 == 0 ? -INFINITY : INFINITY;
      if (kind >= 9 || mixed(i + 5) % 50 == 0) return kind % 3 == 1 ? -infinity : infinity;
      return kind < 3   ? bell(12, i)
             : kind < 6 ? (i % 7 == 0 ? 0.0f : FLT_MAX * (i % 2 == 0 ? 1.0f : -1.0f))
                        : std::vector<float>{FLT_MAX, -3.0f, -FLT_MAX, 0.0f, 0x1p-149f, -0x1p-149f}
                              [i / 3000 + (std::size_t)kind - 6];
    });
}

UNIT_TEST(a_nonfinite_element_marks_only_its_own_bucket) {
  for (const std::uint32_t bad : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7f800001u,
                                  0xff812345u, 0x7fffffffu, 0xffffffffu})
    for (int bits = 1; bits <= kMostBits; ++bits)
      for (const std::uint32_t bucket : kBuckets)
        for (const std::size_t place : {0u, 63u, 64u, 1000u, 2499u}) {
          const Format format = quantized(bits, bucket, bits % 2 == 0);
          const float* out = check(format, 2500, true, [=](std::size_t i) {
            return i == place ? from_bits(bad) : bell(8, i);
          });
          const std::size_t width = bucket == 0 ? 2500 : bucket;
          for (std::size_t i = 0; i < 2500; ++i)
            if ((bad & 0x7fffffff) == 0x7f800000)
              assert_int_equal(i == place, !std::isfinite(out[i]));
            else
              assert_int_equal(i / width == place / width, to_bits(out[i]) == 0x7fc00000);
        }
  // Finite numbers whose bits are nearly those of infinity make no NaN of the bucket.
  assert_true(std::isfinite(check(
      quantized(8, 0), 9, true, [](std::size_t i) { return i % 2 == 0 ? FLT_MAX : -FLT_MAX; })[0]));
}

// A header that no encoder writes must do no harm: it reads as marked.
UNIT_TEST(foreign_headers_read_as_marked) {
  const float pairs[][2] = {{INFINITY, INFINITY},  {0, INFINITY}, {NAN, 0}, {0, NAN},
                            {-INFINITY, INFINITY}, {0, -INFINITY}};
  for (const auto& pair : pairs)
    for (int bits = 1; bits <= kMostBits; ++bits) {
      const Format format = quantized(bits, 0);
      const std::size_t bytes = encoded_bytes(format, 100);
      auto* coded = g_coded.take<std::byte>(bytes, true);
      float* out = g_out.take<float>(100, true);
      memset(coded, 0xff, bytes);
      memcpy(coded, pair, 8);
      g_kernels->decode(format, coded, 100, out, nullptr);
      for (int i = 0; i < 100; ++i) assert_int_equal(to_bits(out[i]), 0x7fc00000);
    }
}

// The layout in numbers that anyone can follow.
UNIT_TEST(the_layout_is_as_documented) {
  const float in[9] = {0, 1, 2, 3, 4, 5, 6, 7, 7};
  const unsigned char expected[] = {0, 0, 0, 0, 0, 0, 0xe0, 0x40, 0x88, 0xc6, 0xfa, 7};
  std::byte coded[sizeof expected];
  assert_int_equal(encoded_bytes(quantized(3, 0), 9), sizeof expected);
  g_kernels->encode(quantized(3, 0), RandomStream{}, in, nullptr, 9, coded, nullptr);
  assert_memory_equal(coded, expected, sizeof expected);
}

}  // namespace
