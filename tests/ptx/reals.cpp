// SPDX-License-Identifier: BSD-3-Clause
// Rows of the instruction table: arithmetic of floats, in every rounding mode, with and without
// .ftz and .sat. The process rounds to nearest when these are called (run.cpp).
#include <cfenv>
#include <cmath>

#include "tests/ptx/lanes.h"

namespace slimpi::test::ptx {

namespace {

// The one NaN that a GPU's float arithmetic gives. In double it keeps the payload, as a CPU does.
constexpr std::uint32_t kNan = 0x7fffffff;

float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(kNan);
}
double canonical(double value) {
  return value;
}

// .ftz: a subnormal number counts as zero of its sign.
float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
// .sat: to [0, 1]; a NaN to 0.
float saturated(float value) {
  return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f;
}

struct Add {
  template <typename T>
  static T of(T a, T b, T) {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  static T of(T a, T b, T) {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  static T of(T a, T b, T) {
    return a * b;
  }
};
struct Div {
  template <typename T>
  static T of(T a, T b, T) {
    return a / b;
  }
};
// One rounding.
struct Fma {
  template <typename T>
  static T of(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
// A number is chosen before a NaN, and -0 is less than 0.
struct Min {
  template <typename T>
  static T of(T a, T b, T) {
    if (a != a || b != b) return a != a ? b : a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b, T) {
    if (a != a || b != b) return a != a ? b : a;
    return a > b || (a == b && std::signbit(b)) ? a : b;
  }
};
struct Neg {
  template <typename T>
  static T of(T a, T, T) {
    return -a;
  }
};
struct Abs {
  template <typename T>
  static T of(T a, T, T) {
    return std::fabs(a);
  }
};

// To nearest: what the compiler assumes anyway.
template <typename Operation, typename T, unsigned sources>
void nearest(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint64_t* const to = warp.values(i.to[0]);
  const std::uint64_t *const a = warp.values(i.from[0]),
                             *const b = sources > 1 ? warp.values(i.from[1]) : a,
                             *const c = sources > 2 ? warp.values(i.from[2]) : a;
  for_lanes(lanes, [&](unsigned l) {
    to[l] = put<T>(canonical(Operation::of(get<T>(a[l]), get<T>(b[l]), get<T>(c[l]))));
  });
  std::uint32_t known = kAllLanes;
  for (unsigned s = 0; s < sources; ++s) known &= warp.known(i.from[s]);
  warp.set_known(i.to[0], lanes, known);
}

// The rest. Volatile operands, so that the operation is done while the mode is set.
template <typename Operation, typename T, unsigned sources, int mode, bool flush, bool saturate>
void rounded(Warp& warp, const Instruction& i, std::uint32_t lanes) {
  std::uint32_t known = kAllLanes;
  for (unsigned s = 0; s < sources; ++s) known &= warp.known(i.from[s]);
  for_lanes(lanes, [&](unsigned l) {
    T from[3] = {};
    for (unsigned s = 0; s < sources; ++s) {
      from[s] = get<T>(warp.values(i.from[s])[l]);
      if constexpr (flush) from[s] = flushed(from[s]);
    }
    volatile T a = from[0], b = from[1], c = from[2], result;
    std::fesetround(mode);
    result = Operation::of(T(a), T(b), T(c));
    std::fesetround(FE_TONEAREST);
    T value = result;
    if constexpr (flush) value = flushed(value);
    if constexpr (saturate) value = saturated(value);
    warp.values(i.to[0])[l] = put<T>(canonical(value));
  });
  warp.set_known(i.to[0], lanes, known);
}

template <typename T, unsigned sources>
Row row(Handler run) {
  return {run, kBits<T>, std::vector<unsigned>(sources, kBits<T>)};
}

template <typename Operation, typename T, unsigned sources, int mode>
void add_mode(Table& table, const std::string& name) {
  const std::string type = std::is_same_v<T, float> ? ".f32" : ".f64";
  table[name + type] = row<T, sources>(rounded<Operation, T, sources, mode, false, false>);
  if constexpr (std::is_same_v<T, float>) {
    table[name + ".ftz.f32"] = row<T, sources>(rounded<Operation, T, sources, mode, true, false>);
    table[name + ".sat.f32"] = row<T, sources>(rounded<Operation, T, sources, mode, false, true>);
    table[name + ".ftz.sat.f32"] =
        row<T, sources>(rounded<Operation, T, sources, mode, true, true>);
  }
}

template <typename Operation, typename T, unsigned sources>
void add_modes(Table& table, const std::string& name) {
  add_mode<Operation, T, sources, FE_TONEAREST>(table, name + ".rn");
  add_mode<Operation, T, sources, FE_TOWARDZERO>(table, name + ".rz");
  add_mode<Operation, T, sources, FE_DOWNWARD>(table, name + ".rm");
  add_mode<Operation, T, sources, FE_UPWARD>(table, name + ".rp");
  table[name + (std::is_same_v<T, float> ? ".rn.f32" : ".rn.f64")] =
      row<T, sources>(nearest<Operation, T, sources>);
}

template <typename T>
void add_rows(Table& table) {
  const std::string type = std::is_same_v<T, float> ? ".f32" : ".f64";
  add_modes<Add, T, 2>(table, "add");
  add_modes<Sub, T, 2>(table, "sub");
  add_modes<Mul, T, 2>(table, "mul");
  add_modes<Div, T, 2>(table, "div");
  add_modes<Fma, T, 3>(table, "fma");
  table["min" + type] = row<T, 2>(nearest<Min, T, 2>);
  table["max" + type] = row<T, 2>(nearest<Max, T, 2>);
  table["neg" + type] = row<T, 1>(nearest<Neg, T, 1>);
  table["abs" + type] = row<T, 1>(nearest<Abs, T, 1>);
}

}  // namespace

void add_real_rows(Table& table) {
  add_rows<float>(table);
  add_rows<double>(table);
}

}  // namespace slimpi::test::ptx
