// SPDX-License-Identifier: BSD-3-Clause
// Error feedback: how much of a residual is added to a value before it is encoded. A residual may
// be of another tensor (comm/tensor_state.h), so nothing is believed of it: it is clamped to a few
// steps of the encoder for the values as they are now, without it. What is cut off is dropped. The
// limit is more than the encoder leaves of the right tensor, so the mean of many sums of it nears
// the exact one.
//
// A quantized bucket with the step u and L = 2^bits - 1:
//   stochastic       The levels are those of the values without the residuals, which are less than
//                    u. Clamped to u: |x' - x| < 2 u.
//   nearest, 1 bit   Levels at both ends of the values, or at 0 and u or -u, whichever side the
//                    greatest x + e has. Residuals come to about 3/2 u. Clamped to 2 u: x' and x
//                    are at most 2 u apart whatever the residual is.
//   nearest          The levels are those of x + e, so that they reach all values though 0 is one
//                    of them. With |e| <= u the range is at most L u + 2 u, so the step is v <= (1
//                    + 2/L) u, and |x' - x| <= u + v/2 <= (3/2 + 1/L) u. A right residual, of a
//                    bucket with the step w, is at most w/2: nothing of it is cut off unless the
//                    range without residuals has fallen below 1/2 + 1/L of what it was.
//
// With the packed codec u is the step of the value's bucket (math/packed.h). Other buckets take its
// bits as residuals grow, and values at the end of the levels lose a step: residuals come to about
// 4 u, which is the limit. A bucket without bits keeps all of its values, until they are so large
// that it has a bit; so u is at least the greatest scale of the tile that has none.
//
// A value codec has the distance of its values around x for the step: |x' - x| is at most 3/2 of
// what spacing() says, which is 1 to 2 of these distances.
#pragma once
#include "kernels/math/packed.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels {

// The limit for values of up to this magnitude: so many steps, or less, so that no sum of a finite
// value and a clamped residual overflows.
SLIMPI_HD float residual_limit(float steps, float greatest) {
  const float room = (0x1.fffffep127f - greatest) * 0.5f;
  return steps < room ? steps : room;
}

// The limit in a bucket of values with this header. 0 in a constant bucket and in one that is not
// finite.
SLIMPI_HD float residual_limit(const Format& format, const Header& header) {
  if (!is_finite(header)) return 0;
  const float step = (header.max - header.min) / (float)((1 << format.bits) - 1);
  return residual_limit(format.bits == 1 && !format.stochastic ? 2 * step : step,
                        header.max > -header.min ? header.max : -header.min);
}

// The limit in a packed bucket with this step, and this number of its scale.
SLIMPI_HD float residual_limit(const PackedHeader& header, float step, std::uint16_t number) {
  const float least = scale_without_bits(header);
  return residual_limit(4 * (step > least ? step : least), greatest_of_number(number));
}

// Whether a bucket of values with this header keeps it when residuals are added.
SLIMPI_HD bool keeps_header(const Format& format, const Header& header) {
  return format.stochastic || (format.bits == 1 && (header.min > 0 || header.max < 0));
}
// The header of one that does not, from the extremes of the sums.
SLIMPI_HD Header header_of_sums(const Format& format, const Header& sums, float limit) {
  if (format.bits != 1 || !is_finite(sums)) return sums;
  const float step = limit * 0.5f;
  return sums.max >= -sums.min ? Header{0, step} : Header{-step, 0};
}

// The residual within -limit and limit. A NaN, which no residual is, becomes the limit.
SLIMPI_HD float clamp_residual(float residual, float limit) {
  residual = residual < limit ? residual : limit;
  return residual > -limit ? residual : -limit;
}

}  // namespace slimpi::kernels
