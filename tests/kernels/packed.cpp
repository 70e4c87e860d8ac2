// SPDX-License-Identifier: BSD-3-Clause
// The packed codec against its description: error bounds, zeros, what one value spoils, lengths,
// and buffers that no encoder has written.
#include "kernels/math/packed.h"

#include <cfloat>

#include "algorithm/residual_limit.h"
#include "kernels/cpu/cpu.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"
#include "tests/kernels/memory.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

const Kernels& path() {
  return *cpu_kernels(CpuPath::automatic);
}

struct Coded {
  std::vector<float> in, out;
  std::vector<std::byte> bytes;
};

Coded coded(const Format& format, std::size_t count, const auto& make) {
  Coded result;
  for (std::size_t i = 0; i < count; ++i) result.in.push_back(make(i));
  result.out.resize(count);
  result.bytes.resize(encoded_bytes(format, count));
  path().encode(format, RandomStream{}, result.in.data(), nullptr, count, result.bytes.data(),
                nullptr);
  path().decode(format, result.bytes.data(), count, result.out.data(), nullptr);
  return result;
}

// Tests the bound of math/packed.h for the tile that begins at `at`.
void check_tile(const Coded& c, std::size_t first, std::size_t count, const std::byte* at) {
  PackedHeader header;
  memcpy(&header, at, sizeof header);
  for (std::size_t i = 0; i < count; ++i) {
    const float x = c.in[first + i], y = c.out[first + i];
    const std::size_t bucket = i / kPackedBucket;
    const auto byte = (std::uint8_t)at[sizeof header + bucket];
    if (byte == kNonfiniteBucket || !std::isfinite(x)) {
      const bool infinite = byte != kNonfiniteBucket && std::isinf(x);
      assert_int_equal(to_bits(y), infinite ? to_bits(x) : 0x7fc00000);
      continue;
    }
    const int width = width_of(byte, header.detail + (bucket < header.finer ? 1 : 0));
    const double step = (double)step_of(header.base, byte & 0x7f, width), u = 0x1p-24;
    const bool negative = (byte & kNegativeSide) != 0, other = negative ? x > 0 : x < 0;
    const double bound = (width != 0 && other ? 1 : 0.5) * step + 3 * u * std::fabs(x);
    assert_true(std::fabs((double)x - (double)y) <= bound);
    if (x == 0) assert_int_equal(to_bits(y), 0);
  }
}

UNIT_TEST(errors_are_within_the_bound) {
  for (const int half_bits : {2, 3, 5, 8, 16, 25, 32})
    for (const std::uint32_t tile : {64u, 2048u, 65536u})
      for (int kind = 0; kind < kKinds; ++kind)
        for (const std::size_t count : {1, 63, 64, 65, 2049, 5003}) {
          const Format format = packed(half_bits, tile);
          const Coded c = coded(format, count, [&](std::size_t i) { return input(kind, 3, i); });
          const std::byte* at = c.bytes.data();
          for (std::size_t i = 0; i < count; i += tile) {
            const std::size_t n = std::min<std::size_t>(tile, count - i);
            check_tile(c, i, n, at);
            at += packed_tile_bytes(format, n);
          }
        }
}

// Errors are within the bound of SLIMPI_VERIFY: for inputs of one scale, and for buckets from 0 to
// 20 octaves below the first bucket; without residuals, and with residuals of another tensor.
UNIT_TEST(errors_are_within_what_is_verified) {
  double closest = 0;
  for (const int half_bits : {2, 3, 4, 5, 8, 11, 16, 25, 32})
    for (const std::size_t count : {64, 65, 128, 192, 640, 5003})
      for (const int kind : {0, 2, 3, 4, 6, 7})
        for (const bool feedback : {false, true}) {
          const Format format = packed(half_bits, 65536);
          std::vector<float> in(count), residual(count), out(count);
          for (std::size_t i = 0; i < count; ++i) {
            const int octave = kind < 6 ? 0 : -(int)(mixed(i / 64 + (std::size_t)kind) % 21);
            in[i] = std::ldexp(input(kind < 6 ? kind : 0, 5, i), octave);
            residual[i] = bell(9, i) * (i % 3 == 0 ? 1e30f : 1.0f);
          }
          std::vector<std::byte> bytes(encoded_bytes(format, count));
          path().encode(format, RandomStream{}, in.data(), feedback ? residual.data() : nullptr,
                        count, bytes.data(), nullptr);
          path().decode(format, bytes.data(), count, out.data(), nullptr);
          double tile = 0;
          for (const float x : in) tile = std::max(tile, std::fabs((double)x));
          for (std::size_t first = 0; first < count; first += kPackedBucket) {
            const std::size_t end = std::min(count, first + kPackedBucket);
            double bucket = 0;
            for (std::size_t i = first; i < end; ++i)
              bucket = std::max(bucket, std::fabs((double)in[i]));
            const double bound = algorithm::most_packed_error(format, bucket, tile, feedback);
            for (std::size_t i = first; i < end; ++i) {
              const double error = std::fabs((double)in[i] - (double)out[i]);
              assert_true(error <= bound + 0x1p-22 * bucket);
              closest = std::max(closest, error / (bound + 0x1p-120));
            }
          }
        }
  print_message("at most %.2f of the bound\n", closest);
  assert_true(closest > 0.5);
}

// A message has the bits that were asked for, its headers included. At most one unit stays unused:
// one bit for each value of a bucket.
UNIT_TEST(messages_are_full) {
  for (int half_bits = 2; half_bits <= 2 * kMostBits; ++half_bits) {
    const Format format = packed(half_bits, 4096);
    assert_int_equal(encoded_bytes(format, 8192), 8192 * half_bits / 16);
    const Coded c = coded(format, 4096, [](std::size_t i) { return bell(3, i); });
    PackedHeader header;
    memcpy(&header, c.bytes.data(), sizeof header);
    std::uint32_t units = 0;
    for (std::uint32_t bucket = 0; bucket < 64; ++bucket)
      units += (std::uint32_t)width_of((std::uint8_t)c.bytes[sizeof header + bucket],
                                       header.detail + (bucket < header.finer ? 1 : 0));
    const std::uint32_t room = packed_units(format, 4096);
    assert_true(units <= room && (units + 1 >= room || units == 64 * kMostWidth));
  }
}

// The layout of math/packed.h, byte by byte: a tile of one bucket, with levels of 7 bits.
UNIT_TEST(a_bucket_has_its_bits_where_they_belong) {
  const Format format = packed(14, 64);
  const Coded c =
      coded(format, 64, [](std::size_t i) { return (float)((int)i - 31) * 2.0f; });  // -62 to 64
  PackedHeader header;
  memcpy(&header, c.bytes.data(), sizeof header);
  assert_int_equal(header.base + ((int)c.bytes[8] & 0x7f), 0x42800000 >> 20);  // scale 64
  assert_int_equal(width_of((std::uint8_t)c.bytes[8], header.detail), 7);
  const std::byte* const bucket = c.bytes.data() + packed_header_bytes(64);
  for (int i = 0; i < 64; ++i) {
    const int four = (int)bucket[i % 32] >> i / 32 * 4 & 15;
    const int two = (int)bucket[32 + i % 16] >> i / 16 * 2 & 3;
    const int one = (int)bucket[48 + i % 8] >> i / 8 & 1;
    const float step = 1;
    const int level = (four | two << 4 | one << 6) - 63;
    assert_int_equal(level, (int)lrintf(c.in[(std::size_t)i] / step));
    assert_true(c.out[(std::size_t)i] == (float)level * step);
  }
}

// Infinities and NaNs are single values, however dense they are, and the others keep their bound:
// from 3 bits on; of one kind from 2 bits on; with fewer where whole buckets have one. Elsewhere
// their buckets are NaN. A sum of a tile and its opposite has NaNs in the same places.
UNIT_TEST(what_is_not_finite_stays_single) {
  const float kinds[] = {INFINITY, -INFINITY, from_bits(0x7f800001u)};
  for (const int half_bits : {2, 4, 5, 6, 9, 16, 32})
    for (const std::size_t count : {1, 63, 200, 4000, 70000})
      for (const std::size_t each : {1, 2, 61, 64, 3000})
        for (const int mixed_kinds : {1, 2, 3}) {
          const Format format = packed(half_bits, longest_packed_tile(half_bits));
          const Coded c = coded(format, count, [&](std::size_t i) {
            const bool whole = each == 64 && i / 64 % 2 == 0;
            const std::size_t kind = each == 64 ? i / 64 : i / each;
            return whole || (each != 64 && i % each == 0) ? kinds[kind % (unsigned)mixed_kinds]
                                                          : bell(4, i);
          });
          const bool always = half_bits >= 6 || (each == 64 && count > 64) ||
                              (mixed_kinds == 1 && (half_bits >= 4 || each == 1) && count > 64);
          std::size_t at = 0;
          for (std::size_t first = 0; first < count; first += format.bucket) {
            const std::size_t n = std::min<std::size_t>(format.bucket, count - first);
            check_tile(c, first, n, c.bytes.data() + at);
            at += packed_tile_bytes(format, n);
          }
          std::vector<float> sum(count), opposite;
          for (const float x : c.in) opposite.push_back(std::isinf(x) ? -x : 0);
          const Addend addends[] = {{c.bytes.data(), nullptr}, {nullptr, opposite.data()}};
          path().sum_encode(format, RandomStream{}, addends, 2, nullptr, nullptr, count, nullptr,
                            sum.data(), nullptr);
          for (std::size_t i = 0; i < count; ++i) {
            if (always && std::isinf(c.in[i])) assert_true(c.out[i] == c.in[i]);
            if (always && std::isfinite(c.in[i])) assert_true(std::isfinite(c.out[i]));
            if (std::isinf(c.in[i])) assert_int_equal(to_bits(sum[i]), 0x7fc00000);
            if (std::isfinite(c.out[i])) assert_true(sum[i] == c.out[i]);
          }
        }
}

// Error feedback leaves the residuals of a bucket with an infinity as they are.
UNIT_TEST(a_bucket_with_marks_keeps_its_residuals) {
  std::vector<float> in(200), residual(200), out(200);
  for (std::size_t i = 0; i < 200; ++i)
    in[i] = i == 70 ? -INFINITY : bell(3, i), residual[i] = .01f;
  const Format format = packed(10, 65536);
  std::vector<std::byte> bytes(encoded_bytes(format, 200));
  path().encode(format, RandomStream{}, in.data(), residual.data(), 200, bytes.data(), nullptr);
  path().decode(format, bytes.data(), 200, out.data(), nullptr);
  for (std::size_t i = 0; i < 200; ++i) {
    assert_true(i == 70 ? out[i] == in[i] : std::fabs(out[i] - in[i]) < 0.3f);
    if (i / 64 == 1)
      assert_true(residual[i] == .01f);
    else
      assert_true(std::fabs(in[i] + .01f - out[i] - residual[i]) < 1e-6f);
  }
}

// A value that is 16 octaves below the greatest value of a tile becomes zero: a value of 1e30
// spoils its tile, and no other tile.
UNIT_TEST(an_outlier_spoils_its_tile) {
  const Coded c = coded(packed(16, 2048), 6000,
                        [](std::size_t i) { return i == 3000 ? 1e30f : 1e-3f * bell(5, i); });
  for (std::size_t i = 0; i < 6000; ++i) {
    if (i == 3000)
      assert_true(std::fabs(c.out[i] - 1e30f) <= 1e30f / 128);
    else if (i / 2048 == 1)
      assert_true(c.out[i] == 0);
    else
      assert_true(std::fabs(c.out[i] - c.in[i]) <= 1e-4f);
  }
}

// Below 2^-110 all is zero; the greatest float, constants and values far from zero keep what the
// bound says, and stay finite.
UNIT_TEST(extremes) {
  for (const int half_bits : {2, 5, 16, 32}) {
    const Format format = packed(half_bits, 65536);
    for (const float x :
         {FLT_MAX, -FLT_MAX, 3.3e38f, -3.2e38f, 1e38f, 0.1f, 1e6f, -3.0f, 0x1p-100f}) {
      const Coded c = coded(format, 777, [&](std::size_t) { return x; });
      check_tile(c, 0, 777, c.bytes.data());
      for (const float y : c.out) assert_true(std::isfinite(y));
    }
    const Coded tiny = coded(format, 300, [](std::size_t i) { return 0x1p-120f * bell(6, i); });
    for (const float y : tiny.out) assert_int_equal(to_bits(y), 0);
    const Coded far = coded(format, 3000, [](std::size_t i) { return 1e5f + bell(6, i); });
    check_tile(far, 0, 3000, far.bytes.data());
  }
}

// Rounding makes no infinity of a finite sum.
UNIT_TEST(sums_near_the_greatest_float_saturate) {
  const Format format = packed(4, 1024);
  const Coded c =
      coded(format, 1024, [](std::size_t i) { return i % 2 == 0 ? 1.7e38f : -1.7e38f; });
  std::vector<float> in(1024), out(1024);
  for (std::size_t i = 0; i < 1024; ++i) in[i] = i % 2 == 0 ? 1.7e38f : -1.7e38f;
  const Addend addends[] = {{nullptr, in.data()}, {c.bytes.data(), nullptr}};
  path().sum_encode(format, RandomStream{}, addends, 2, nullptr, nullptr, 1024, nullptr, out.data(),
                    nullptr);
  for (const float y : out) assert_true(std::isfinite(y));
}

// Fuzzes the decoder: every byte that describes a tile may be anything. The decoder reads only
// within the tile, which lies at the end of memory. All paths decode it to the same values, and a
// tile that no encoder writes is NaN.
UNIT_TEST(the_decoder_trusts_nothing) {
  static Arena memory, floats;
  const std::size_t counts[] = {1, 64, 200, 1000, 4096};
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const std::size_t count = counts[seed % 5];
    const Format format = packed(2 + (int)(mixed(seed) % 31), seed % 2 == 0 ? 1024 : 65536);
    const std::size_t bytes = encoded_bytes(format, count);
    const Coded c = coded(format, count, [&](std::size_t i) {
      return seed % 7 < 3 && mixed(seed + i) % (1 + seed % 90) == 0
                 ? from_bits(0x7f800000u | (unsigned)(i % 3) << 30)
                 : bell(seed, i);
    });
    auto* const data = memory.take<std::byte>(bytes, true);
    memcpy(data, c.bytes.data(), bytes);
    for (std::uint64_t k = 0; k < 1 + seed % 4; ++k) {
      const std::uint64_t bits = mixed(seed * 7 + k);
      const std::size_t most = seed % 3 == 0 ? bytes : std::min<std::size_t>(bytes, 40);
      data[bits % most] = (std::byte)(bits >> 40);
    }
    std::uint64_t first = 0;
    for (const CpuPath which : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
      if (!usable(which)) continue;
      float* const out = floats.take<float>(count, true);
      memset(out, 0, count * sizeof(float));
      cpu_kernels(which)->decode(format, data, count, out, nullptr);
      assert_true(floats.intact());
      cpu_kernels(which)->decode_add(format, data, count, out, nullptr);
      const Addend addends[] = {{data, nullptr}, {nullptr, c.in.data()}};
      cpu_kernels(which)->sum_encode(format, RandomStream{}, addends, 2, out, nullptr, count,
                                     nullptr, out, nullptr);
      const std::uint64_t found = hash(out, count * sizeof(float));
      if (which == CpuPath::generic) first = found;
      assert_true(found == first);
    }
  }
}

// Some headers ask for more bytes than the tile has; others are headers that no encoder writes.
UNIT_TEST(damaged_tiles_are_nan) {
  const Format format = packed(8, 1024);
  const Coded c = coded(format, 1000, [](std::size_t i) { return bell(8, i); });
  const PackedHeader headers[] = {{0, 0, 0, 0},
                                  {900, kMostDetail, 0, 0},
                                  {900, 0, 0, 1},
                                  {900, 0, 17, 0},
                                  {900, kMostDetail + 1, 0, 0},
                                  {900, kLeastDetail - 1, 0, 0},
                                  {0x7f8, 0, 0, 0},
                                  {900, 0, 0, 120}};
  for (const PackedHeader& header : headers) {
    std::vector<std::byte> bytes = c.bytes;
    std::vector<float> out(1000);
    memcpy(bytes.data(), &header, sizeof header);
    path().decode(format, bytes.data(), 1000, out.data(), nullptr);
    for (const float y : out) assert_int_equal(to_bits(y), 0x7fc00000);
  }
}

}  // namespace
