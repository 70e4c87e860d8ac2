// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the min-max quantizer, in one copy: a bucket's header, the scale that is
// computed from it, and the conversion of an element to its level and back. CPU and GPU loops only
// iterate over these functions. Nothing here may be contracted to a fused multiply-add or reordered
// (-ffp-contract=off, --fmad=false), and the rounding mode is to nearest even.
//
// A bucket's levels are x'(q) = offset + (q - zero_point) * step, q = 0 .. L, with L = 2^bits - 1
// and step = (max - min) / L. With rounding to nearest in a bucket that contains 0, offset = 0 and
// zero_point is the level nearest to 0, so that 0.0 is a level; else offset = min and zero_point =
// 0.
//
// All of it is computed in float where max - min is between 2^-100 and 2^100, so that nothing
// overflows or loses bits to underflow; otherwise in double (an extended-range bucket). Encoder and
// decoder decide from the header alone. For a finite bucket, with m = max(|min|, |max|) and u =
// 2^-24 (half a unit in the last place), at any number of bits:
//   nearest      |x' - x| <= step/2 + 6 u m + 2^-150
//   stochastic   |x' - x| <  step   + 9 u m + 2^-150
// The terms in u are one rounding each of: x - offset, 1/step, their product; step, its product
// with q - zero_point, and the sum with offset. With offset = 0 there are only four of them, each
// relative to x or x': 2 u |x| + 2 u |x'|. Otherwise x - offset is at most m where the bucket does
// not contain 0. With stochastic rounding it may, and x - offset is up to 2 m, which would make 11.
// But a float position p has a distance of at least u p from an integer that it is not, so the
// level is nearer than step - u (x - offset). In double only the last one remains, of x' to a
// float. A constant bucket is exact. 0.0 rounded to nearest is exact too, as +0.
#pragma once
#include "kernels/format.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels {

struct Header {
  float min, max;
};

SLIMPI_HD Header nonfinite_header() {
  return {nan_value(), nan_value()};
}

// The header of a bucket with these extremes: a non-finite header if an element was not finite. A
// zero in it is +0.
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

// Whether the bucket is non-finite: its elements all decode to NaN. Any header that no encoder
// writes counts as non-finite.
SLIMPI_HD bool is_nonfinite(const Header& header) {
  return !(is_finite(header.min) && is_finite(header.max) && header.min <= header.max);
}

SLIMPI_HD double range_of(const Header& header) {
  return (double)header.max - (double)header.min;
}

// Whether this bucket needs Scale<double>.
SLIMPI_HD bool is_extended_range(const Header& header) {
  const double range = range_of(header);
  return range != 0 && (range < 0x1p-100 || range > 0x1p100);
}

// Adding `magic` to a number rounds it to the nearest integer, which is then in the lowest bits of
// the sum: as a 32-bit number these are first_level + integer.
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
  Real offset, step, inverse_step;  // inverse_step = 1 / step; both 0 in a constant bucket
  Real origin;                      // magic + zero_point
  std::int32_t last_level;          // first_level + L
};

// The scale of a finite bucket.
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

// Never infinite: the outermost levels of a near-overflow bucket may exceed the greatest float.
SLIMPI_HD float to_float(double value) {
  const double greatest = 0x1.fffffep127;
  value = value < greatest ? value : greatest;
  value = value > -greatest ? value : -greatest;
  return (float)value + 0.0f;
}

// Whether the bucket has values above 2^100 (a near-overflow bucket). Rounding alone may make a sum
// of decoded values overflow where the sum of the encoder's inputs is finite; that sum saturates.
// Only a near-overflow bucket can do so; elsewhere a sum that is not finite is not
// changed.
SLIMPI_HD bool is_near_overflow(const Header& header) {
  return !is_nonfinite(header) && (header.max > 0x1p100f || header.min < -0x1p100f);
}
// The replacement of a float sum that is not finite: `total` is the same sum in double, `slack` the
// sum of the steps of the encoded buckets. A total that exceeds the greatest float by more than
// `slack` is an overflow, and stays infinite.
SLIMPI_HD float saturated_sum(double total, double slack) {
  const double limit = 0x1.fffffep127 + slack;
  return total <= limit && total >= -limit ? to_float(total) : canonical((float)total);
}

// x'(q).
SLIMPI_HD float level_value(const Scale<float>& scale, std::uint16_t q) {
  const float steps = float_of(q | (std::uint32_t)Magic<float>::first_level) - scale.origin;
  return scale.offset + steps * scale.step;
}
SLIMPI_HD float level_value(const Scale<double>& scale, std::uint16_t q) {
  const double steps = (double)q - (scale.origin - Magic<double>::magic);
  return to_float(scale.offset + steps * scale.step);
}

}  // namespace slimpi::kernels
