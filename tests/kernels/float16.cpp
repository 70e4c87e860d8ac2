// SPDX-License-Identifier: BSD-3-Clause
// fp16 and bf16 against their definition, on every path.

#include "kernels/cpu/cpu.h"
#include "tests/helper/base/unit_test.h"
#include "tests/kernels/data.h"

using namespace slimpi;
using namespace slimpi::kernels;
using namespace slimpi::test;

namespace {

// A format of `fraction` fraction bits whose least normal exponent is `least`.
struct Definition {
  int fraction, least, exponents;
};
constexpr Definition kFp16 = {10, -14, 31}, kBf16 = {7, -126, 255};

Definition definition(Codec codec) {
  return codec == Codec::fp16 ? kFp16 : kBf16;
}

// Returns the value of a code, by the definition.
double value_of(Codec codec, std::uint16_t code) {
  const Definition d = definition(codec);
  const int exponent = (code & 0x7fff) >> d.fraction, fraction = code & ((1 << d.fraction) - 1);
  double magnitude = 0;
  if (exponent == d.exponents)
    magnitude = fraction == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    magnitude = ldexp(fraction, d.least - d.fraction);
  else
    magnitude = ldexp(fraction + (1 << d.fraction), exponent - 1 + d.least - d.fraction);
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounds x by the definition: the nearest multiple of the last place, and of two the even one;
// infinity from half a last place beyond the greatest number on.
double rounded(Codec codec, float x) {
  const Definition d = definition(codec);
  if (!std::isfinite(x)) return x;
  int exponent = 0;
  (void)frexp(x, &exponent);
  const double last = ldexp(1, std::max(exponent - 1, d.least) - d.fraction);
  const double result = nearbyint(x / last) * last;
  const double beyond = ldexp(1, d.exponents - 1 + d.least);
  return fabs(result) >= beyond ? copysign(INFINITY, x) : result;
}

std::uint32_t canonical_bits(double value) {
  return std::isnan(value) ? 0x7fc00000 : to_bits((float)value);
}

constexpr std::size_t kCodes = 65536;
float g_in[kCodes], g_out[kCodes];
std::uint16_t g_codes[kCodes];

void encode(const Kernels& path, Codec codec, std::size_t count) {
  path.encode({codec}, RandomStream{}, g_in, nullptr, count, (std::byte*)g_codes, nullptr);
}

UNIT_TEST(every_code_decodes_to_its_value) {
  for (const CpuPath which : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
    if (!usable(which)) continue;
    const Kernels& path = *cpu_kernels(which);
    for (const Codec codec : {Codec::fp16, Codec::bf16}) {
      for (std::size_t i = 0; i < kCodes; ++i) g_codes[i] = (std::uint16_t)i;
      path.decode({codec}, (std::byte*)g_codes, kCodes, g_out, nullptr);
      for (std::size_t i = 0; i < kCodes; ++i)
        assert_int_equal(to_bits(g_out[i]), canonical_bits(value_of(codec, (std::uint16_t)i)));
      // The values are encoded back to their codes; each NaN becomes the one NaN of the codec.
      memcpy(g_in, g_out, sizeof g_in);
      encode(path, codec, kCodes);
      const std::uint16_t nan = codec == Codec::fp16 ? 0x7e00 : 0x7fc0;
      for (std::size_t i = 0; i < kCodes; ++i)
        assert_int_equal(g_codes[i], std::isnan(g_out[i]) ? nan : i);
    }
  }
}

// Floats around every code: the code's value, half-way to the next, and the floats next to both.
UNIT_TEST(floats_round_to_nearest_even) {
  for (const CpuPath which : {CpuPath::generic, CpuPath::avx2, CpuPath::avx512}) {
    if (!usable(which)) continue;
    const Kernels& path = *cpu_kernels(which);
    for (const Codec codec : {Codec::fp16, Codec::bf16})
      for (int kind = 0; kind < 6; ++kind) {
        for (std::size_t i = 0; i < kCodes; ++i) {
          const double here = value_of(codec, (std::uint16_t)i);
          const double next = value_of(codec, (std::uint16_t)((i & 0x7fff) == 0x7fff ? i : i + 1));
          const auto middle = (float)(std::isfinite(here + next) ? here / 2 + next / 2 : here);
          g_in[i] = kind == 0   ? middle
                    : kind == 1 ? nextafterf(middle, -INFINITY)
                    : kind == 2 ? nextafterf(middle, INFINITY)
                    : kind == 3 ? nextafterf((float)here, INFINITY)
                    : kind == 4 ? from_bits((std::uint32_t)mixed(i))
                                : from_bits((std::uint32_t)mixed(i) & 0xbfffffff);
        }
        encode(path, codec, kCodes);
        for (std::size_t i = 0; i < kCodes; ++i) {
          const double found = value_of(codec, g_codes[i]);
          assert_int_equal(canonical_bits(found), canonical_bits(rounded(codec, g_in[i])));
        }
      }
  }
}

UNIT_TEST(overflow_is_infinity) {
  g_in[0] = 65519.99f;
  g_in[1] = 65520.0f;
  g_in[2] = -65520.0f;
  g_in[3] = 3.4e38f;
  g_in[4] = -INFINITY;
  encode(*cpu_kernels(CpuPath::automatic), Codec::fp16, 5);
  const std::uint16_t expected[] = {0x7bff, 0x7c00, 0xfc00, 0x7c00, 0xfc00};
  for (int i = 0; i < 5; ++i) assert_int_equal(g_codes[i], expected[i]);
  encode(*cpu_kernels(CpuPath::automatic), Codec::bf16, 4);
  assert_int_equal(g_codes[3], 0x7f80);
}

}  // namespace
