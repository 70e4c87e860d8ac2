// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the min-max quantizer, the only copy there is: one bucket's header, the grid of
// values that follows from it, and the way of an element to its level and back. CPU and GPU loops
// only iterate over these functions. Nothing here may be contracted to a fused multiply-add or
// reordered (-ffp-contract=off, --fmad=false), and the rounding mode is to nearest even.
//
// A bucket's levels are x'(q) = base + (q - zero) * unit, q = 0 .. L, with L = 2^bits - 1 and
// unit = (max - min) / L. Rounding to nearest in a bucket that contains 0 has base = 0 and `zero`
// the level nearest to it, so that 0.0 is a level; else base = min and zero = 0.
//
// All of it runs in float where max - min lies between 2^-100 and 2^100, so that nothing overflows
// or loses bits at the bottom, and in double in the rest. Both sides decide from the header alone.
// For a finite bucket, with m = max(|min|, |max|) and u = 2^-24 (half a unit in the last place):
//   nearest      |x' - x| <= unit/2 + 6 u m + 2^-150
//   stochastic   |x' - x| <  unit   + 6 u m + 2^-150
// The terms in u are one rounding each of: x - base, 1/unit, their product; unit, its product with
// q - zero, and the sum with base. Of these a grid around zero has only four, each relative to x or
// x': 2 u |x| + 2 u |x'|. In double all but the last, of x' to a float, vanish.
// A constant bucket is exact, and so is 0.0 rounded to nearest, as +0.
#pragma once
#include "kernels/math/bits.h"

namespace slimpi::kernels {

struct Header {
  float min, max;
};

SLIMPI_HD Header nonfinite_header() {
  return {nan_value(), nan_value()};
}

// The header of a bucket that has these extremes: marked if an element was not finite, and a zero
// in it is +0.
SLIMPI_HD Header header_of(const Extremes& extremes) {
  if (extremes.signed_high >= (std::int32_t)kInfinityBits ||
      extremes.unsigned_high >= (kInfinityBits | 0x80000000))
    return nonfinite_header();
  const float min = float_of(extremes.unsigned_high >= 0x80000000 ? extremes.unsigned_high
                                                                  : extremes.unsigned_low);
  const float max = float_of(extremes.signed_high >= 0 ? (std::uint32_t)extremes.signed_high
                                                       : extremes.unsigned_low);
  return {min + 0.0f, max + 0.0f};
}

// Is the bucket marked, its elements all NaN? Any header that no encoder writes counts as a mark.
SLIMPI_HD bool is_nonfinite(const Header& header) {
  return !(is_finite(header.min) && is_finite(header.max) && header.min <= header.max);
}

SLIMPI_HD double range_of(const Header& header) {
  return (double)header.max - (double)header.min;
}

// Does this bucket need Grid<double>?
SLIMPI_HD bool is_extended_range(const Header& header) {
  const double range = range_of(header);
  return range != 0 && (range < 0x1p-100 || range > 0x1p100);
}

// Adding `magic` to a number rounds it to the nearest integer, which then stands in the lowest bits
// of the sum: as a 32-bit number these are first_level + integer.
template <typename Real>
struct Magic;
template <>
struct Magic<float> {
  static constexpr float magic = 0x1.8p23f;
  static constexpr std::int32_t first_level = 0x4b400000;
};
template <>
struct Magic<double> {
  static constexpr double magic = 0x1.8p52;
  static constexpr std::int32_t first_level = 0;
};

template <typename Real>
struct Scale {
  Real offset, step, inverse_step;  // inverse = 1 / unit; both 0 in a constant bucket
  Real origin;                      // magic + zero; zero is the level whose value is base
  std::int32_t last_level;          // first_level + L
};

// The grid of a bucket that is not marked.
template <typename Real>
SLIMPI_HD Scale<Real> scale_of(const Header& header, int bits, bool stochastic) {
  const double range = range_of(header), top = (1 << bits) - 1;
  const double step = range / top, inverse_step = range == 0 ? 0.0 : top / range;
  double offset = header.min, zero_point = 0;
  if (!stochastic && range != 0 && header.min <= 0 && header.max >= 0) {
    const double magic = Magic<double>::magic;
    zero_point = (-offset * inverse_step + magic) - magic;
    zero_point = zero_point < top ? zero_point : top;
    offset = 0;
  }
  return {(Real)offset, (Real)step, (Real)inverse_step, Magic<Real>::magic + (Real)zero_point,
          Magic<Real>::first_level + (1 << bits) - 1};
}

template <typename Real>
SLIMPI_HD std::int32_t clamp_level(const Scale<Real>& scale, std::int32_t level) {
  const std::int32_t first = Magic<Real>::first_level;
  level = level > first ? level : first;
  return level < scale.last_level ? level : scale.last_level;
}

// The level nearest to x, as first_level + q.
template <typename Real>
SLIMPI_HD std::int32_t nearest_level(const Scale<Real>& scale, float x) {
  const Real position = ((Real)x - scale.offset) * scale.inverse_step;
  return clamp_level(scale, (std::int32_t)bits_of(position + scale.origin));
}

// One of the two levels around x, as first_level + q; u is uniform in [0, 1).
template <typename Real>
SLIMPI_HD std::int32_t stochastic_level(const Scale<Real>& scale, float x, float u) {
  const Real position = ((Real)x - scale.offset) * scale.inverse_step;
  const auto below = (std::int32_t)position;  // position >= 0: truncation is the floor
  const std::int32_t up = (Real)u < position - (Real)below ? 1 : 0;
  return clamp_level(scale, Magic<Real>::first_level + below + up);
}

// Never infinite: the outermost levels of a huge bucket may lie beyond the greatest float.
SLIMPI_HD float to_float(double value) {
  const double greatest = 0x1.fffffep127;
  value = value < greatest ? value : greatest;
  value = value > -greatest ? value : -greatest;
  return (float)value + 0.0f;
}

// Sums near the greatest float. Rounding alone may carry a sum of decoded values over it where the
// sum of what was encoded is finite; such a sum saturates. It can happen only where an encoded
// bucket is huge; everywhere else a sum that is not finite stays as it is.
SLIMPI_HD bool is_near_overflow(const Header& header) {
  return !is_nonfinite(header) && (header.max > 0x1p100f || header.min < -0x1p100f);
}
// What stands for a sum in float that is not finite: `total` is the same sum in double, `slack` the
// sum of the units of the encoded buckets. Beyond that it is an overflow, and stays infinite.
SLIMPI_HD float saturated_sum(double total, double slack) {
  const double limit = 0x1.fffffep127 + slack;
  return total <= limit && total >= -limit ? to_float(total) : canonical((float)total);
}

// x'(q).
SLIMPI_HD float level_value(const Scale<float>& scale, std::uint8_t q) {
  const float steps = float_of(q | (std::uint32_t)Magic<float>::first_level) - scale.origin;
  return scale.offset + steps * scale.step;
}
SLIMPI_HD float level_value(const Scale<double>& scale, std::uint8_t q) {
  const double steps = (double)q - (scale.origin - Magic<double>::magic);
  return to_float(scale.offset + steps * scale.step);
}

}  // namespace slimpi::kernels
