// SPDX-License-Identifier: BSD-3-Clause
// Sums, residuals and the small kernels, against plain loops over decoded values.
#include <pthread.h>

#include <array>

#include "kernels/cpu/cpu.h"
#include "kernels/math/feedback.h"
#include "kernels/math/packed.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"
#include "tests/kernels/memory.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

constexpr std::size_t kCount = 5003;
constexpr int kAddends = kMaxAddends;
float g_exact[kAddends][kCount], g_decoded[kAddends][kCount], g_carry[kCount];
float g_total[kCount], g_residual[kCount], g_old_residual[kCount], g_result[kCount];
std::byte g_coded[kAddends][4 * kCount + 8192], g_out[4 * kCount + 8192], g_again[sizeof g_out];

const Kernels& path() {
  return *cpu_kernels(CpuPath::automatic);
}

const Format kFormats[] = {{Codec::float32},    {Codec::fp16},         {Codec::bf16},
                           quantized(8, 2048),  quantized(4, 0),       quantized(3, 100),
                           quantized(1, 64),    quantized(8, 0, true), quantized(2, 2048, true),
                           quantized(16, 2048), quantized(12, 100),    quantized(11, 0, true),
                           packed(2, 65536),    packed(5, 2048),       packed(8, 1024),
                           packed(16, 65536),   packed(32, 65536)};

bool same(const float* a, const float* b, std::size_t n) {
  return memcmp(a, b, n * sizeof(float)) == 0;
}

float canonical_sum(float a, float b) {
  const float sum = a + b;
  return std::isnan(sum) ? from_bits(0x7fc00000) : sum;
}

// Encodes every addend; makes a carry and a residual.
void make(const Format& format, bool special) {
  for (int a = 0; a < kAddends; ++a) {
    for (std::size_t i = 0; i < kCount; ++i) g_exact[a][i] = bell((std::uint64_t)(50 + a), i);
    if (special && a == 3) g_exact[a][2100] = INFINITY;
    if (special && a == 5) g_exact[a][4500] = NAN;
    path().encode(format, RandomStream{}, g_exact[a], nullptr, kCount, g_coded[a], nullptr);
    path().decode(format, g_coded[a], kCount, g_decoded[a], nullptr);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    g_carry[i] = bell(70, i);
    g_residual[i] = g_old_residual[i] = 0.01f * bell(71, i);
  }
}

// decode_add is decode and an addition.
UNIT_TEST(decode_add_adds_what_decode_gives) {
  for (const Format& format : kFormats) {
    make(format, true);
    memcpy(g_result, g_carry, sizeof g_result);
    path().decode_add(format, g_coded[5], kCount, g_result, nullptr);
    for (std::size_t i = 0; i < kCount; ++i)
      assert_int_equal(to_bits(g_result[i]), to_bits(canonical_sum(g_carry[i], g_decoded[5][i])));
  }
}

// sum_encode adds in order, then encodes, then decodes. The test has every number of addends,
// encoded and exact ones mixed, and the result in the place of an exact addend.
UNIT_TEST(sum_encode_is_sum_encode_decode) {
  for (const Format& format : kFormats)
    for (int addends = 1; addends <= kAddends; addends += addends < 5 ? 1 : 11)
      for (int variant = 0; variant < 12; ++variant) {
        const bool with_carry = variant % 2 != 0, with_residual = variant / 2 % 2 != 0;
        make(format, addends > 3);
        Addend list[kAddends];
        const int exact = variant / 4 * (addends - 1) / 2;  // the one that is not encoded
        for (int a = 0; a < addends; ++a) list[a].encoded = g_coded[a];
        list[exact] = {nullptr, g_exact[exact]};
        for (std::size_t i = 0; i < kCount; ++i) {
          const auto addend = [&](int a) { return a == exact ? g_exact[a][i] : g_decoded[a][i]; };
          float sum = with_carry ? canonical_sum(g_carry[i], addend(0)) : addend(0);
          for (int a = 1; a < addends; ++a) sum = canonical_sum(sum, addend(a));
          g_total[i] = sum;
        }
        const RandomStream random{9, 8, 7, 6};
        const std::size_t bytes = encoded_bytes(format, kCount);
        path().encode(format, random, g_total, with_residual ? g_residual : nullptr, kCount,
                      g_again, nullptr);
        float* result = g_exact[exact];
        memcpy(g_result, result, sizeof g_result);
        path().sum_encode(format, random, list, addends, with_carry ? g_carry : nullptr,
                          with_residual ? g_old_residual : nullptr, kCount, g_out, result, nullptr);
        assert_memory_equal(g_out, g_again, bytes);
        assert_true(same(g_old_residual, g_residual, kCount));
        path().decode(format, g_again, kCount, g_decoded[exact], nullptr);
        assert_true(same(result, g_decoded[exact], kCount));
        // Without `out` sum_encode computes only the exact sum.
        memcpy(result, g_result, sizeof g_result);
        path().sum_encode(format, random, list, addends, with_carry ? g_carry : nullptr, nullptr,
                          kCount, nullptr, g_decoded[exact], nullptr);
        assert_true(same(g_decoded[exact], g_total, kCount));
      }
}

// Returns the limit in a bucket of a packed tile, from the header and the bucket byte that the
// values alone would have.
float packed_limit_at(const Format& format, std::size_t i) {
  const std::size_t tile = i / format.bucket, first = tile * format.bucket;
  const std::size_t n = std::min<std::size_t>(format.bucket, kCount - first);
  const std::size_t bucket = (i - first) / kPackedBucket, start = first + bucket * kPackedBucket;
  if (i == start && bucket == 0)
    path().encode(format, RandomStream{}, g_carry + first, nullptr, n, g_again, nullptr);
  PackedHeader header;
  memcpy(&header, g_again, sizeof header);
  const auto byte = (std::uint8_t)g_again[sizeof header + bucket];
  BucketExtremes extremes;
  for (std::size_t k = start; k < std::min(start + kPackedBucket, first + n); ++k)
    include(extremes, to_bits(g_carry[k]));
  const int width = width_of(byte, header.detail + (bucket < header.finer ? 1 : 0));
  return residual_limit(header, step_of(header.base, byte & 0x7f, width), scale_number(extremes));
}

// Returns the largest amount that may be added to element i of g_carry. Calls for a packed tile
// come in ascending order of i.
float limit_at(const Format& format, std::size_t i) {
#define SLIMPI_ROW(name, number, Type, bits, greatest, infinity) \
  if (format.codec == Codec::name) return spacing(Type(), g_carry[i]);
  SLIMPI_VALUE_CODECS(SLIMPI_ROW)
#undef SLIMPI_ROW
  if (format.codec == Codec::packed) return packed_limit_at(format, i);
  const std::size_t bucket = bucket_elements(format, kCount), first = i / bucket * bucket;
  const auto [least, most] =
      std::minmax_element(g_carry + first, g_carry + std::min(first + bucket, kCount));
  return residual_limit(format, {*least, *most});
}

// Codec::float64 adds doubles in order, on every path of the processor. Encoded segments are
// aligned to 4 bytes only, and the result may take the place of an addend.
UNIT_TEST(doubles_are_added_as_doubles) {
  constexpr std::size_t kDoubles = 1031;
  constexpr Format kFormat{Codec::float64};
  static double values[kAddends + 1][kDoubles], total[kDoubles], result[kDoubles];
  static std::byte encoded[kAddends][sizeof total + 4], out[sizeof total];
  for (const CpuPath kind : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
    const Kernels* const table = cpu_kernels(kind);
    if (table == nullptr) continue;
    for (int a = 0; a <= kAddends; ++a)
      for (std::size_t i = 0; i < kDoubles; ++i)
        values[a][i] = std::ldexp(double(bell(std::uint64_t(80 + a), i)) / 3, int(i % 41) - 300);
    values[2][77] = NAN;
    values[3][78] = -std::numeric_limits<double>::infinity();
    std::copy(std::begin(values[0]), std::end(values[0]), total);
    Addend addends[kAddends];
    for (int a = 0; a < kAddends; ++a) {
      for (std::size_t i = 0; i < kDoubles; ++i) total[i] += values[a + 1][i];
      const auto* const floats = reinterpret_cast<const float*>(values[a + 1]);
      if (a == 5) {
        addends[a].exact = floats;
        continue;
      }
      table->encode(kFormat, {}, floats, nullptr, 2 * kDoubles, encoded[a] + 4, nullptr);
      addends[a].encoded = encoded[a] + 4;
    }
    const std::uint64_t nan = 0x7ff8000000000000;
    std::memcpy(&total[77], &nan, sizeof nan);
    const auto* const carry = reinterpret_cast<const float*>(values[0]);
    auto* const in_place = reinterpret_cast<float*>(values[6]);  // of addend 5
    table->sum_encode(kFormat, {}, addends, kAddends, carry, nullptr, 2 * kDoubles, out, in_place,
                      nullptr);
    assert_memory_equal(values[6], total, sizeof total);
    table->decode(kFormat, out, 2 * kDoubles, reinterpret_cast<float*>(result), nullptr);
    assert_memory_equal(result, total, sizeof total);
    for (std::size_t i = 0; i < kDoubles; ++i) total[i] += values[1][i];
    std::memcpy(&total[77], &nan, sizeof nan);
    table->decode_add(kFormat, encoded[0] + 4, 2 * kDoubles, reinterpret_cast<float*>(result),
                      nullptr);
    assert_memory_equal(result, total, sizeof total);
  }
}

// The sent values and the new residual add up to the input and the part of the old residual that
// was added: at most one step of the values, however large the old residual was.
UNIT_TEST(residual_and_output_make_the_input) {
  for (const Format& format : kFormats)
    for (const float foreign : {1.0f, 1e-3f, 1e6f, 1e38f}) {
      make(format, false);
      for (std::size_t i = 0; i < kCount; ++i)
        g_old_residual[i] = g_residual[i] = foreign * g_residual[i];
      path().encode(format, RandomStream{}, g_carry, g_residual, kCount, g_out, nullptr);
      path().decode(format, g_out, kCount, g_result, nullptr);
      for (std::size_t i = 0; i < kCount; ++i) {
        const float limit = limit_at(format, i);
        const float added = std::max(-limit, std::min(limit, g_old_residual[i]));
        assert_true(g_residual[i] == g_carry[i] + added - g_result[i]);
        const float most = format.codec == Codec::packed      ? 16
                           : format.codec == Codec::quantized ? 3
                                                              : 1.6f;
        assert_true(std::fabs(g_result[i] - g_carry[i]) <=
                    most * limit + 1e-6f * std::fabs(g_carry[i]));
      }
    }
}

// A marked bucket loses nothing: its residual stays. The residual of an fp16 value that overflows
// stays, too.
UNIT_TEST(a_residual_outlives_a_nonfinite_element) {
  for (const Format& format : kFormats) {
    make(format, false);
    g_carry[2100] = NAN;
    g_carry[40] = -INFINITY;
    path().encode(format, RandomStream{}, g_carry, g_residual, kCount, g_out, nullptr);
    path().decode(format, g_out, kCount, g_result, nullptr);
    int kept = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      assert_true(std::isfinite(g_residual[i]));
      if (std::isfinite(g_result[i])) continue;
      ++kept;
      assert_int_equal(to_bits(g_residual[i]), to_bits(g_old_residual[i]));
    }
    assert_int_not_equal(kept, 0);
  }
  make({Codec::fp16}, false);
  g_carry[7] = 1e6f;
  path().encode({Codec::fp16}, RandomStream{}, g_carry, g_residual, kCount, g_out, nullptr);
  assert_int_equal(to_bits(g_residual[7]), to_bits(g_old_residual[7]));
}

// A value that its codec rounds to 0 is kept until the residual exceeds the codec's limit; a float
// stops growing before that if the value is 2^25 times smaller than the limit.
UNIT_TEST(a_value_that_rounds_to_zero_is_sent_later) {
  const struct {
    Format format;
    float limit;
  } rows[] = {{{Codec::fp16}, 0x1p-25f}, {{Codec::bf16}, 0x1p-134f}, {packed(8, 1024), 0x1p-110f}};
  for (const auto& [format, limit] : rows)
    for (const int smaller : {1, 4, 32}) {
      for (std::size_t i = 0; i < kCount; ++i) g_carry[i] = limit / (float)smaller;
      memset(g_residual, 0, sizeof g_residual);
      for (int call = 1; call <= smaller + 1; ++call) {
        path().encode(format, RandomStream{}, g_carry, g_residual, kCount, g_out, nullptr);
        path().decode(format, g_out, kCount, g_result, nullptr);
        for (const float sent : g_result) assert_true((sent > 0) == (call > smaller));
      }
    }
  for (const float least : {0x1p-25f, 0x1p-110f}) {
    volatile float kept = least / 2;
    kept = kept + least * 0x1p-25f;
    assert_true(kept == least / 2);
  }
}

UNIT_TEST(sum_adds_in_order_into_any_of_its_inputs) {
  for (int inputs = 1; inputs <= kAddends; ++inputs)
    for (int target = -1; target < inputs; ++target) {
      make({Codec::float32}, true);
      const float* list[kAddends];
      for (int a = 0; a < inputs; ++a) list[a] = g_exact[a];
      for (std::size_t i = 0; i < kCount; ++i) {
        float sum = g_exact[0][i];
        for (int a = 1; a < inputs; ++a) sum = canonical_sum(sum, g_exact[a][i]);
        g_total[i] = sum;
      }
      float* out = target < 0 ? g_result : g_exact[target];
      path().sum(list, inputs, kCount, out, nullptr);
      assert_true(same(out, g_total, kCount));
    }
}

UNIT_TEST(combine_rounds_each_product) {
  for (int target = 0; target < 3; ++target) {
    make({Codec::float32}, true);
    float* out = target == 0 ? g_result : g_exact[target];
    for (std::size_t i = 0; i < kCount; ++i) {
      const volatile float x = 0.3f * g_exact[1][i], y = -1.7f * g_exact[2][i];
      g_total[i] = canonical_sum(x, y);
    }
    path().combine(0.3f, g_exact[1], -1.7f, g_exact[2], kCount, out, nullptr);
    assert_true(same(out, g_total, kCount));
  }
}

// With a factor of 0, y is not read, so 0 times an infinity is no part of the result.
UNIT_TEST(combine_with_one_input) {
  const float values[] = {1.5f, -0.0f, 0.0f, -2.25f, INFINITY, -INFINITY, NAN, 1e-45f};
  for (std::size_t i = 0; i < kCount; ++i) g_carry[i] = values[i % 8];
  for (float* const out : {g_result, g_carry}) {
    for (std::size_t i = 0; i < kCount; ++i)
      g_total[i] = canonical_sum(3.0f * values[i % 8], -0.0f);
    path().combine(3.0f, g_carry, 0, nullptr, kCount, out, nullptr);
    assert_true(same(out, g_total, kCount));
  }
}

UNIT_TEST(find_beyond_finds_any) {
  int found = 7;
  for (std::size_t i = 0; i < kCount; ++i) g_carry[i] = i % 2 == 0 ? 3.4028235e38f : -1e-45f;
  path().find_beyond(g_carry, kMaxFloat, kCount, &found, nullptr);
  assert_int_equal(found, 0);
  for (const std::size_t place : {std::size_t(0), std::size_t(2047), std::size_t(2048), kCount - 1})
    for (const std::uint32_t bad : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu}) {
      const float old = g_carry[place];
      g_carry[place] = from_bits(bad);
      path().find_beyond(g_carry, kMaxFloat, kCount, &found, nullptr);
      assert_int_equal(found, 1);
      path().find_beyond(g_carry, kMaxFloat, place, &found, nullptr);
      assert_int_equal(found, 0);
      g_carry[place] = old;
    }
  for (std::size_t i = 0; i < kCount; ++i) g_carry[i] = i % 2 == 0 ? 5.0f : -5.0f;
  for (const std::size_t place : {std::size_t(0), std::size_t(2048), kCount - 1})
    for (const float bad : {5.000001f, -5.000001f, std::nanf("")}) {
      const float old = g_carry[place];
      g_carry[place] = bad;
      path().find_beyond(g_carry, 5.0f, kCount, &found, nullptr);
      assert_int_equal(found, 1);
      path().find_beyond(g_carry, 5.0f, place, &found, nullptr);
      assert_int_equal(found, 0);
      g_carry[place] = old;
    }
}

UNIT_TEST(compare_gives_squares_of_error_and_norm) {
  make({Codec::float32}, false);
  double result[2], error = 0, norm = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double a = g_exact[0][i], b = g_exact[1][i];
    error += (a - b) * (a - b);
    norm += b * b;
  }
  path().compare(g_exact[0], g_exact[1], kCount, result, nullptr);
  assert_true(std::fabs(result[0] - error) <= 1e-12 * error);
  assert_true(std::fabs(result[1] - norm) <= 1e-12 * norm);
  path().compare(g_exact[0], g_exact[1], 0, result, nullptr);
  assert_true(result[0] == 0 && result[1] == 0);
}

UNIT_TEST(fill_fills) {
  for (const std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(17), kCount - 1}) {
    for (float& element : g_result) element = 5;
    path().fill(g_result, -0.25f, n, nullptr);
    for (std::size_t i = 0; i < kCount; ++i) assert_true(g_result[i] == (i < n ? -0.25f : 5.0f));
  }
}

// A thread of the program may have little stack: of 1 MiB at most 8 KiB are used.
UNIT_TEST(kernels_need_little_stack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip();
#endif
  // valgrind, which preloads a library of its own, takes the rest of an ended stack for unwritten.
  if (const char* const preload = std::getenv("LD_PRELOAD");
      preload != nullptr && std::strstr(preload, "vgpreload") != nullptr)
    skip();
  constexpr std::size_t kBytes = 1 << 20;
  static std::array<unsigned char, kBytes> stack;
  const auto used_by = [](void* (*work)(void*)) {
    stack.fill(0xa5);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack.data(), kBytes), 0);
    assert_int_equal(pthread_create(&thread, &attributes, work, nullptr), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    return std::size_t(stack.end() - std::find_if(stack.begin(), stack.end(),
                                                  [](unsigned char byte) { return byte != 0xa5; }));
  };
  const std::size_t alone = used_by([](void*) -> void* { return nullptr; });
  const std::size_t all = used_by([](void*) -> void* {
    for (const Format& format : kFormats) {
      Addend list[kAddends];
      for (int a = 0; a < kAddends; ++a) list[a].encoded = g_coded[a];
      path().encode(format, RandomStream{}, g_carry, g_residual, kCount, g_coded[0], nullptr);
      for (int a = 1; a < kAddends; ++a) list[a].encoded = g_coded[0];
      path().sum_encode(format, RandomStream{}, list, kAddends, g_carry, g_residual, kCount, g_out,
                        g_result, nullptr);
      path().decode_add(format, g_out, kCount, g_result, nullptr);
    }
    const float* const inputs[] = {g_carry, g_carry, g_carry, g_carry, g_carry};
    path().sum(inputs, 5, kCount, g_result, nullptr);
    return nullptr;
  });
  print_message("%zu bytes of stack\n", all - alone);
  assert_true(all <= alone + 8 * 1024);
}

}  // namespace
