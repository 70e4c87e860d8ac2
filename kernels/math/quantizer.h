// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the min-max quantizer, shared by CPU and GPU loops: a bucket's header (its
// minimum and maximum), the scale that follows from the header, and the conversion of an element to
// its level and back. To give the same bytes everywhere, it must be compiled without fused
// multiply-adds (-ffp-contract=off, --fmad=false) and without reordering, and run with rounding to
// nearest even.
//
// The levels of a bucket stand for x'(q) = offset + (q - zero_point) * step, q = 0 .. L, with L =
// 2^bits - 1 and step = (max - min) / L. With rounding to nearest in a bucket that contains 0,
// offset = 0 and zero_point is the level nearest to 0, so that one level stands for 0.0. Otherwise
// offset = min and zero_point = 0.
//
// A bucket is computed in float if max - min is between 2^-100 and 2^100, where nothing overflows
// or loses bits to underflow, and in double otherwise (an extended-range bucket). Encoder and
// decoder decide this from the header alone. In a finite bucket, with m = max(|min|, |max|) and u =
// 2^-24 (half a unit in the last place), for any number of bits:
//   nearest      |x' - x| <= step/2 + 6 u m + 2^-150
//   stochastic   |x' - x| <  step   + 9 u m + 2^-150
// The terms in u come from six roundings. The encoder makes three, in the position p = (x - offset)
// / step: x - offset, 1/step, and their product. The decoder makes three: step, its product with q
// - zero_point, and the sum with offset. The last one is at most u m, each other one at most u |x -
// offset|.
// - offset = 0: the difference and the sum are not rounded. Four roundings remain, each relative to
//   x or x': 2 u |x| + 2 u |x'|.
// - The bucket does not contain 0: x - offset is at most m, so all six together are at most 6 u m.
// - Stochastic rounding, and the bucket contains 0: offset = min, so x - offset is up to 2 m, and
//   the six would give 11 u m. But p is a float: if p is not an integer, it differs from the
//   nearest integer by at least u p. Without roundings therefore |x' - x| <= step - u (x - offset),
//   which lowers the bound by 2 u m, to 9 u m. 2^-150 is half of the least denormal float.
// In double, only the rounding of x' to a float remains. A constant bucket is exact, and so is 0.0
// rounded to nearest, as +0.
//
// An infinite bucket has infinities but no NaNs. Its header has the extremes of the finite values,
// the maximum first; if they are equal, the next float serves as the maximum. Level 0 stands for
// -infinity and the last level for +infinity, so L, which counts the finite levels between them, is
// less by 2. With 1 bit, the header is the infinity and the value between the extremes that is
// nearest to 0, and all finite values decode to this value; a bucket with both infinities is then
// non-finite.
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

// Returns the minimum and maximum of a bucket, infinities included, as a header, with any zero as
// +0. If an element was a NaN, returns a non-finite header.
SLIMPI_HD Header header_of(const Extremes& extremes) {
  if (extremes.signed_high > (std::int32_t)kInfinityBits ||
      extremes.unsigned_high > (kInfinityBits | 0x80000000))
    return nonfinite_header();
  const float min = float_of(extremes.unsigned_high >= 0x80000000 ? extremes.unsigned_high
                                                                  : extremes.unsigned_low);
  const float max = float_of(extremes.signed_high >= 0 ? (std::uint32_t)extremes.signed_high
                                                       : extremes.unsigned_low);
  return {min + 0.0f, max + 0.0f};
}
// Returns whether this is the header of a finite bucket.
SLIMPI_HD bool is_finite(const Header& header) {
  return is_finite(header.min) && is_finite(header.max) && header.min <= header.max;
}
// Returns whether a bucket with these extremes, as header_of() returns them, has infinities but no
// NaNs.
SLIMPI_HD bool has_infinity(const Header& extremes) {
  return extremes.min <= extremes.max && !is_finite(extremes);
}
// Returns the header of an infinite bucket, given its extremes and those of its finite values.
SLIMPI_HD Header infinite_header(const Header& extremes, const Extremes& of_finite, int bits) {
  const bool any = of_finite.unsigned_low != UINT32_MAX;
  const Header finite = any ? header_of(of_finite) : Header{0, 0};
  if (bits == 1) {
    const bool below = !is_finite(extremes.min) && extremes.min < 0;
    const bool above = !is_finite(extremes.max) && extremes.max > 0;
    if (below && above) return nonfinite_header();
    // Selects between bit patterns, because nvcc would turn a selection between floats into min().
    const bool between = finite.min <= 0 && finite.max >= 0;
    const std::uint32_t nearest = bits_of(finite.min > 0 ? finite.min : finite.max);
    return {below ? extremes.min : extremes.max, float_of(between ? 0 : nearest)};
  }
  if (finite.min < finite.max) return {finite.max, finite.min};
  const std::uint32_t bits_of_it = bits_of(finite.max);
  if (finite.max < 0) return {float_of(bits_of_it - 1), finite.min};
  if (bits_of_it + 1 < kInfinityBits) return {float_of(bits_of_it + 1), finite.min};
  return {finite.max, float_of(bits_of_it - 1)};
}

// Returns whether the bucket is non-finite, that is, whether all its elements decode to NaN. A
// header with an infinite maximum, which no encoder writes, counts as non-finite.
SLIMPI_HD bool is_nonfinite(const Header& header) {
  return header.min != header.min || !is_finite(header.max);
}
// Returns whether some elements of the bucket decode to infinities. The bucket must not be one
// whose elements all decode to NaN (is_nonfinite()).
SLIMPI_HD bool is_infinite(const Header& header) {
  return header.min > header.max || !is_finite(header.min);
}
// Returns the minimum and maximum among the finite values of the bucket's levels.
SLIMPI_HD Header finite_part(const Header& header) {
  if (!is_finite(header.min)) return {header.max, header.max};
  return header.min > header.max ? Header{header.max, header.min} : header;
}

// Returns whether the bucket is computed in double, with Scale<double>.
SLIMPI_HD bool is_extended_range(const Header& header) {
  const double range = (double)header.max - (double)header.min;
  return range != 0 && !(range >= 0x1p-100 && range <= 0x1p100);
}

// Adding `magic` to a number rounds it to the nearest integer; the low 32 bits of the sum, as an
// integer, are then first_level + that integer.
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
  std::int32_t below, above;        // 1 if -infinity, +infinity has a level; not in L
};

// Returns the scale of a bucket that is finite or infinite.
template <typename Real>
SLIMPI_HD Scale<Real> scale_of(const Header& coded, int bits, bool stochastic) {
  const Header header = finite_part(coded);
  const bool one = !is_finite(coded.min);  // 1 bit: one level is the infinity
  const std::int32_t below = (one ? coded.min < 0 : coded.min > coded.max) ? 1 : 0;
  const std::int32_t above = (one ? coded.min > 0 : coded.min > coded.max) ? 1 : 0;
  const std::int32_t last = one ? 0 : (1 << bits) - 1 - below - above;
  const double range = (double)header.max - (double)header.min, top = last > 0 ? last : 1;
  const double step = range / top, inverse_step = range == 0 ? 0.0 : top / range;
  double offset = header.min, zero_point = 0;
  if (!stochastic && range != 0 && header.min <= 0 && header.max >= 0) {
    const double magic = Magic<double>::magic;
    zero_point = (-offset * inverse_step + magic) - magic;
    zero_point = zero_point < top ? zero_point : top;
    offset = 0;
  }
  return {(Real)offset,
          (Real)step,
          (Real)inverse_step,
          Magic<Real>::magic + (Real)zero_point,
          Magic<Real>::first_level + last,
          below,
          above};
}

template <typename Real>
SLIMPI_HD std::int32_t clamp_level(const Scale<Real>& scale, std::int32_t level) {
  const std::int32_t first = Magic<Real>::first_level;
  level = level > first ? level : first;
  return level < scale.last_level ? level : scale.last_level;
}

// Returns the level of x among all levels of its bucket, given its `level` among the finite ones.
// The level of -infinity comes before the finite levels, and that of +infinity after them. Only
// buckets with a Scale<double> can have infinities, so with a Scale<float> the result is `level`.
SLIMPI_HD std::int32_t with_infinities(const Scale<float>&, float, std::int32_t level) {
  return level;
}
SLIMPI_HD std::int32_t with_infinities(const Scale<double>& scale, float x, std::int32_t level) {
  if (is_finite(x)) return scale.below + level;
  return x < 0 ? Magic<double>::first_level : scale.last_level + scale.below + scale.above;
}

// Returns the level nearest to x, as first_level + q.
template <typename Real>
SLIMPI_HD std::int32_t nearest_level(const Scale<Real>& scale, float x) {
  const Real position = ((Real)x - scale.offset) * scale.inverse_step;
  const std::int32_t level = clamp_level(scale, (std::int32_t)bits_of(position + scale.origin));
  return with_infinities(scale, x, level);
}

// Returns one of the two levels around x, as first_level + q, chosen by u, which is uniform in [0,
// 1).
template <typename Real>
SLIMPI_HD std::int32_t stochastic_level(const Scale<Real>& scale, float x, float u) {
  const Real position = ((Real)x - scale.offset) * scale.inverse_step;
  const auto below = (std::int32_t)position;  // position > -1: truncation is the floor, or 0
  const std::int32_t up = (Real)u < position - (Real)below ? 1 : 0;
  const std::int32_t level = clamp_level(scale, Magic<Real>::first_level + below + up);
  return with_infinities(scale, x, level);
}

// Returns the value as a finite float. The clamp matters in near-overflow buckets, whose outermost
// levels may exceed the greatest float.
SLIMPI_HD float to_float(double value) {
  const double greatest = 0x1.fffffep127;
  value = value < greatest ? value : greatest;
  value = value > -greatest ? value : -greatest;
  return (float)value + 0.0f;
}

// Returns whether the bucket has values above 2^100 (a near-overflow bucket). In these buckets, a
// sum of decoded values may overflow only because of rounding, although the sum of the encoder's
// inputs is finite, so saturated_sum() replaces it. In other buckets a sum that is not finite is
// left as it is.
SLIMPI_HD bool is_near_overflow(const Header& header) {
  const Header finite = finite_part(header);
  return !is_nonfinite(header) && (finite.max > 0x1p100f || finite.min < -0x1p100f);
}
// Returns an upper bound of what rounding can add to the magnitude of a value: a step if it is
// stochastic, otherwise about half a step.
SLIMPI_HD double slack_of(const Header& header, int bits, bool stochastic) {
  const double step = scale_of<double>(header, bits, stochastic).step;
  return stochastic ? step : 0.5 * step + 0x1p107;
}
// Returns what replaces a float sum that is not finite. `total` is the sum in double, and `slack`
// the sum of slack_of() over the near-overflow buckets of its encoded addends. A total that exceeds
// the greatest float by `slack` or more is a real overflow and stays infinite.
SLIMPI_HD float saturated_sum(double total, double slack) {
  const double limit = 0x1.fffffep127 + slack;
  return total < limit && total > -limit ? to_float(total) : canonical((float)total);
}

// Returns x'(q), the value of level q.
SLIMPI_HD float level_value(const Scale<float>& scale, std::uint16_t q) {
  const float steps = float_of(q | (std::uint32_t)Magic<float>::first_level) - scale.origin;
  return scale.offset + steps * scale.step;
}
SLIMPI_HD float level_value(const Scale<double>& scale, std::uint16_t q) {
  const std::int32_t level = (std::int32_t)q - scale.below;
  if (scale.last_level < 0) return nan_value();
  if (level < 0) return -float_of(kInfinityBits);
  if (level > scale.last_level) return float_of(kInfinityBits);
  const double steps = (double)level - (scale.origin - Magic<double>::magic);
  return to_float(scale.offset + steps * scale.step);
}

}  // namespace slimpi::kernels
