// SPDX-License-Identifier: BSD-3-Clause
// Rows of the instruction table: cvt.
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/ptx/lanes.h"

namespace slimpi::test::ptx {

namespace {

// A result that is narrower than its register is extended to it.
template <typename To, typename From>
void integer(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  const std::uint64_t mask = i.width >= 64 ? ~0ull : (1ull << i.width) - 1;
  for_lanes(lanes, [&](unsigned lane) {
    const auto value = std::int64_t(To(get<From>(warp.values(i.from[0])[lane])));
    warp.values(i.to[0])[lane] =
        (std::is_signed_v<To> ? std::uint64_t(value) : put<To>(To(value))) & mask;
  });
  // Of a pair, a narrow result needs only the low part.
  warp.set_known(i.to[0], lanes,
                 kBits<To> > 32 ? warp.known(i.from[0]) : warp.known_part(i.from[0], 0));
}

// To an integer: what is beyond its range is its last number; a NaN is 0.
template <typename To, typename From, int mode>
struct ToInteger {
  static To of(From value) {
    if (value != value) return 0;
    From whole = value;
    if constexpr (mode == FE_TOWARDZERO) whole = std::trunc(value);
    if constexpr (mode == FE_TONEAREST) whole = std::nearbyint(value);
    if constexpr (mode == FE_DOWNWARD) whole = std::floor(value);
    if constexpr (mode == FE_UPWARD) whole = std::ceil(value);
    // Both are powers of two, or 0.
    const From low = From(std::numeric_limits<To>::min());
    const From high = std::ldexp(From(1), std::numeric_limits<To>::digits);
    if (whole < low) return std::numeric_limits<To>::min();
    return whole < high ? To(whole) : std::numeric_limits<To>::max();
  }
};

// Where rounding may be needed, in this mode.
template <typename To, typename From, int mode>
struct ToReal {
  static To of(From value) {
    volatile From from = value;
    if (mode != FE_TONEAREST) std::fesetround(mode);
    volatile To result = To(from);
    if (mode != FE_TONEAREST) std::fesetround(FE_TONEAREST);
    if constexpr (std::is_same_v<To, float>)
      if (result != result) return std::bit_cast<float>(0x7fffffffu);
    return result;
  }
};

template <typename To, typename From>
void add_integer(Table& table, const std::string& name) {
  table["cvt." + name] = {integer<To, From>, kBits<To>, {kBits<From>}, Flow::next, false};
}

template <typename From>
void add_from(Table& table, const std::string& from) {
  add_integer<std::uint8_t, From>(table, "u8." + from);
  add_integer<std::int8_t, From>(table, "s8." + from);
  add_integer<std::uint16_t, From>(table, "u16." + from);
  add_integer<std::int16_t, From>(table, "s16." + from);
  add_integer<std::uint32_t, From>(table, "u32." + from);
  add_integer<std::int32_t, From>(table, "s32." + from);
  add_integer<std::uint64_t, From>(table, "u64." + from);
  add_integer<std::int64_t, From>(table, "s64." + from);
}

template <typename To, typename From>
void add_to_integer(Table& table, const std::string& types) {
  table["cvt.rzi." + types] = row_of<ToInteger<To, From, FE_TOWARDZERO>, To, From>();
  table["cvt.rni." + types] = row_of<ToInteger<To, From, FE_TONEAREST>, To, From>();
  table["cvt.rmi." + types] = row_of<ToInteger<To, From, FE_DOWNWARD>, To, From>();
  table["cvt.rpi." + types] = row_of<ToInteger<To, From, FE_UPWARD>, To, From>();
}

template <typename To, typename From>
void add_to_real(Table& table, const std::string& types) {
  table["cvt.rn." + types] = row_of<ToReal<To, From, FE_TONEAREST>, To, From>();
  table["cvt.rz." + types] = row_of<ToReal<To, From, FE_TOWARDZERO>, To, From>();
  table["cvt.rm." + types] = row_of<ToReal<To, From, FE_DOWNWARD>, To, From>();
  table["cvt.rp." + types] = row_of<ToReal<To, From, FE_UPWARD>, To, From>();
}

}  // namespace

void add_convert_rows(Table& table) {
  add_from<std::uint8_t>(table, "u8");
  add_from<std::int8_t>(table, "s8");
  add_from<std::uint16_t>(table, "u16");
  add_from<std::int16_t>(table, "s16");
  add_from<std::uint32_t>(table, "u32");
  add_from<std::int32_t>(table, "s32");
  add_from<std::uint64_t>(table, "u64");
  add_from<std::int64_t>(table, "s64");
  add_to_integer<std::int32_t, float>(table, "s32.f32");
  add_to_integer<std::uint32_t, float>(table, "u32.f32");
  add_to_integer<std::int32_t, double>(table, "s32.f64");
  add_to_real<float, std::int32_t>(table, "f32.s32");
  add_to_real<float, std::uint32_t>(table, "f32.u32");
  add_to_real<double, std::int32_t>(table, "f64.s32");
  add_to_real<double, std::uint16_t>(table, "f64.u16");
  add_to_real<float, double>(table, "f32.f64");
  table["cvt.f64.f32"] = row_of<ToReal<double, float, FE_TONEAREST>, double, float>();
}

}  // namespace slimpi::test::ptx
