// SPDX-License-Identifier: BSD-3-Clause
// Rows of the instruction table: arithmetic of integers.
#include <algorithm>
#include <limits>

#include "tests/ptx/lanes.h"

namespace slimpi::test::ptx {

namespace {

// All of it wraps around, so it is done without a sign.
template <typename T>
using Bare = std::make_unsigned_t<T>;

struct Add {
  template <typename T>
  static T of(T a, T b) {
    return T(Bare<T>(a) + Bare<T>(b));
  }
};
struct Sub {
  template <typename T>
  static T of(T a, T b) {
    return T(Bare<T>(a) - Bare<T>(b));
  }
};
struct MulLow {
  template <typename T>
  static T of(T a, T b) {
    return T(std::uint64_t(a) * std::uint64_t(b));
  }
};
template <typename Wide>
struct MulWide {
  template <typename T>
  static Wide of(T a, T b) {
    return Wide(Wide(a) * Wide(b));
  }
};
struct MadLow {
  template <typename T>
  static T of(T a, T b, T c) {
    return T(std::uint64_t(a) * std::uint64_t(b) + std::uint64_t(c));
  }
};
struct Min {
  template <typename T>
  static T of(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b) {
    return std::max(a, b);
  }
};
struct Neg {
  template <typename T>
  static T of(T a) {
    return T(Bare<T>(0) - Bare<T>(a));
  }
};
struct Divide {
  template <typename T>
  static T of(T a, T b) {
    // The negative of the least number is the number itself.
    return std::is_signed_v<T> && b == T(-1) ? T(Bare<T>(0) - Bare<T>(a)) : T(a / b);
  }
};
struct Remainder {
  template <typename T>
  static T of(T a, T b) {
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};

// By zero, PTX says nothing of the result, so here it counts as never written.
template <typename Operation, typename T>
void divide(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint32_t divisible = 0;
  for_lanes(lanes & warp.known(i.from[1]), [&](unsigned lane) {
    if (get<T>(warp.values(i.from[1])[lane]) != 0) divisible |= 1u << lane;
  });
  two<Operation, T, T, T>(warp, i, divisible);
  warp.set_known(i.to[0], lanes & ~divisible, 0);
}

template <typename T>
void add_rows(Table& table, const std::string& type) {
  table["add." + type] = row_of<Add, T, T, T>();
  table["sub." + type] = row_of<Sub, T, T, T>();
  table["mul.lo." + type] = row_of<MulLow, T, T, T>();
  table["mad.lo." + type] = row_of<MadLow, T, T, T, T>();
  table["min." + type] = row_of<Min, T, T, T>();
  table["max." + type] = row_of<Max, T, T, T>();
  table["div." + type] = {divide<Divide, T>, kBits<T>, {kBits<T>, kBits<T>}};
  table["rem." + type] = {divide<Remainder, T>, kBits<T>, {kBits<T>, kBits<T>}};
  if constexpr (std::is_signed_v<T>) table["neg." + type] = row_of<Neg, T, T>();
}

}  // namespace

void add_integer_rows(Table& table) {
  add_rows<std::uint16_t>(table, "u16");
  add_rows<std::int16_t>(table, "s16");
  add_rows<std::uint32_t>(table, "u32");
  add_rows<std::int32_t>(table, "s32");
  add_rows<std::uint64_t>(table, "u64");
  add_rows<std::int64_t>(table, "s64");
  table["mul.wide.u16"] =
      row_of<MulWide<std::uint32_t>, std::uint32_t, std::uint16_t, std::uint16_t>();
  table["mul.wide.s16"] = row_of<MulWide<std::int32_t>, std::int32_t, std::int16_t, std::int16_t>();
  table["mul.wide.u32"] =
      row_of<MulWide<std::uint64_t>, std::uint64_t, std::uint32_t, std::uint32_t>();
  table["mul.wide.s32"] = row_of<MulWide<std::int64_t>, std::int64_t, std::int32_t, std::int32_t>();
}

}  // namespace slimpi::test::ptx
