// SPDX-License-Identifier: BSD-3-Clause
// Error feedback: how much of a residual e (what earlier calls lost) is added to a value x before
// encoding. x' is the decoded value of x + e. The residual may belong to another tensor
// (comm/tensor_state.h), so |e| is clamped to a limit of a few steps u, where u is the step with
// which the values would be encoded if there were no residuals; the excess is dropped. Residuals
// that belong to their tensor stay below the limit, so the mean of many sums approaches the exact
// mean.
//
// Quantized, in a bucket with L = 2^bits - 1:
//   stochastic       Limit u. The levels are those of the values alone. Residuals stay below u,
//                    and |x' - x| < 2 u.
//   nearest, 1 bit   Limit 2 u. If all x have one sign, the levels are the minimum and the maximum
//                    of x. Otherwise they are 0 and u, or 0 and -u, with the sign of the x + e that
//                    has the greatest magnitude. Residuals reach about 3/2 u, and |x' - x| <= 2 u
//                    for any residual.
//   nearest          Limit u. The levels are those of the sums x + e, so that they span all sums
//                    although 0 is one of the levels. With |e| <= u the range is at most L u + 2 u,
//                    so the step of the sums is v <= (1 + 2/L) u, and |x' - x| <= u + v/2 <=
//                    (3/2 + 1/L) u. If w is the step v of the previous call, then |e| <= w/2, so e
//                    is clamped only if the range of x fell below 1/2 + 1/L of the previous range.
//
// Packed: limit 4 u, where u is the step of the value's bucket (math/packed.h). Residuals reach
// about 4 u for two reasons: the residuals of other buckets raise the scales of those buckets,
// which then take bits from this one, and a value beyond the last level loses up to a step. In a
// bucket of width 0 each call adds the whole values to the residuals, until the residuals are large
// enough for the bucket to get a bit. So that they can grow that far, u is at least the greatest
// scale that has width 0 in the tile.
//
// Value codecs: limit spacing(x), which is 1 to 3 distances between the encodable values around x.
// |x' - x| <= 3/2 spacing(x).
#pragma once
#include "kernels/math/packed.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels {

// Returns the limit of residuals in a bucket whose values have magnitudes up to `greatest`: `steps`
// or, near the greatest float, less, so that no sum of a finite value and a clamped residual
// overflows.
SLIMPI_HD float residual_limit(float steps, float greatest) {
  const float room = (0x1.fffffep127f - greatest) * 0.5f;
  return steps < room ? steps : room;
}

// Returns the limit of residuals in a quantized bucket; `header` is that of the values without
// residuals. The limit is 0 if the bucket is constant or not finite.
SLIMPI_HD float residual_limit(const Format& format, const Header& header) {
  if (!is_finite(header)) return 0;
  const float step = (header.max - header.min) / (float)((1 << format.bits) - 1);
  return residual_limit(format.bits == 1 && !format.stochastic ? 2 * step : step,
                        header.max > -header.min ? header.max : -header.min);
}

// Returns the limit of residuals in a packed bucket with this step and scale number.
SLIMPI_HD float residual_limit(const PackedHeader& header, float step, std::uint16_t number) {
  const float least = scale_without_bits(header);
  return residual_limit(4 * (step > least ? step : least), greatest_of_number(number));
}

// Returns whether a bucket keeps the header of its values when residuals are added to them.
SLIMPI_HD bool keeps_header(const Format& format, const Header& header) {
  return format.stochastic || (format.bits == 1 && (header.min > 0 || header.max < 0));
}
// Returns the header of a bucket after residuals were added, if keeps_header() is false. `sums` has
// the extremes of value + clamped residual.
SLIMPI_HD Header header_of_sums(const Format& format, const Header& sums, float limit) {
  if (format.bits != 1 || !is_finite(sums)) return sums;
  const float step = limit * 0.5f;
  return sums.max >= -sums.min ? Header{0, step} : Header{-step, 0};
}

// Returns the residual clamped to [-limit, limit]. A NaN would become `limit`, but no residual is a
// NaN.
SLIMPI_HD float clamp_residual(float residual, float limit) {
  residual = residual < limit ? residual : limit;
  return residual > -limit ? residual : -limit;
}

}  // namespace slimpi::kernels
