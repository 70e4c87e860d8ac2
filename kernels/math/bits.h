// SPDX-License-Identifier: BSD-3-Clause
// Functions that work on the bits of floats, find the extremes of floats, and add floats so that
// all NaNs in the results are the same.
#pragma once
#include <cstdint>

#include "kernels/inline.h"

namespace slimpi::kernels {

// The NaNs that slimpi produces, one of each type.
constexpr std::uint32_t kNanBits = 0x7fc00000;
constexpr std::uint64_t kDoubleNanBits = 0x7ff8000000000000;
constexpr std::uint32_t kInfinityBits = 0x7f800000;

SLIMPI_HD std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

SLIMPI_HD float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

SLIMPI_HD std::uint64_t bits_of(double value) {
#if defined(__CUDA_ARCH__)
  return (std::uint64_t)__double_as_longlong(value);
#else
  std::uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

SLIMPI_HD double double_of(std::uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return __longlong_as_double((long long)bits);
#else
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

SLIMPI_HD bool is_finite(float value) {
  return (bits_of(value) & 0x7fffffff) < kInfinityBits;
}

SLIMPI_HD float nan_value() {
  return float_of(kNanBits);
}

// Returns `value`, with any NaN replaced by kNanBits. Without that, ranks could differ: which NaN
// an addition produces depends on the machine and on the order of the operands, which the compiler
// chooses.
SLIMPI_HD float canonical(float value) {
  return value == value ? value : float_of(kNanBits);
}

// Returns a + b, where any NaN becomes kNanBits or, for doubles, kDoubleNanBits.
SLIMPI_HD float add(float a, float b) {
  return canonical(a + b);
}
SLIMPI_HD double add(double a, double b) {
  const double sum = a + b;
  return sum == sum ? sum : double_of(kDoubleNanBits);
}

// The extremes of a set of floats, found by comparing their bits as integers. The result does not
// depend on the order of the elements, and a NaN or infinity always becomes an extreme. Three
// comparisons per element suffice, because among floats of one sign the bits sort like the
// magnitudes.
struct Extremes {
  std::int32_t signed_high;     // the greatest of the numbers >= 0; negative: none
  std::uint32_t unsigned_high;  // the most negative number; the maximum if none is negative
  std::uint32_t unsigned_low;   // the least number >= 0; if none, the negative one nearest to 0
};

SLIMPI_HD Extremes no_extremes() {
  return {INT32_MIN, 0, UINT32_MAX};
}

SLIMPI_HD void include(Extremes& extremes, std::uint32_t bits) {
  const auto number = (std::int32_t)bits;
  extremes.signed_high = extremes.signed_high > number ? extremes.signed_high : number;
  extremes.unsigned_high = extremes.unsigned_high > bits ? extremes.unsigned_high : bits;
  extremes.unsigned_low = extremes.unsigned_low < bits ? extremes.unsigned_low : bits;
}

SLIMPI_HD void include(Extremes& extremes, const Extremes& other) {
  if (other.signed_high > extremes.signed_high) extremes.signed_high = other.signed_high;
  if (other.unsigned_high > extremes.unsigned_high) extremes.unsigned_high = other.unsigned_high;
  if (other.unsigned_low < extremes.unsigned_low) extremes.unsigned_low = other.unsigned_low;
}

}  // namespace slimpi::kernels
