// SPDX-License-Identifier: BSD-3-Clause
// Error feedback: how much of a residual is added to a value before it is encoded. A residual may
// be of another tensor (comm/tensor_state.h), so nothing is believed of it: it is clamped to one
// step of the encoder for the values as they are now, without it. What is cut off is dropped.
//
// The bound, for a quantized bucket with the step u and L = 2^bits - 1: with |e| <= u the range of
// x + e is at most L u + 2 u, so its step is v <= (1 + 2/L) u, and with the error of the quantizer
//   nearest      |x' - x| <= u + v/2 <= (3/2 + 1/L) u
//   stochastic   |x' - x| <  u + v   <= (2 + 2/L) u
// whatever the residual is. A right residual, of a bucket with the step w, is at most w/2 (nearest)
// or w (stochastic). So with rounding to nearest nothing of it is cut off unless the range without
// residuals has fallen below 1/2 + 1/L of what it was.
//
// With the packed codec u is the step of the value's bucket (math/packed.h).
//
// A value codec has the distance of its values around x for the step: |x' - x| is at most 3/2 of
// what spacing() says, which is 1 to 2 of these distances.
#pragma once
#include "kernels/math/quantizer.h"

namespace slimpi::kernels {

// The limit for values of up to this magnitude, with this step.
SLIMPI_HD float residual_limit(float step, float greatest) {
  const float room = (0x1.fffffep127f - greatest) * 0.5f;
  return step < room ? step : room;
}

// The limit for a bucket of values with this header: a step, or less, so that no sum of a finite
// value and a clamped residual overflows. 0 in a constant bucket and in a non-finite one.
SLIMPI_HD float residual_limit(const Header& header, int bits) {
  if (is_nonfinite(header)) return 0;
  const float step = (header.max - header.min) / (float)((1 << bits) - 1);
  return residual_limit(step, header.max > -header.min ? header.max : -header.min);
}

// The residual within -limit and limit. A NaN, which no residual is, becomes the limit.
SLIMPI_HD float clamp_residual(float residual, float limit) {
  residual = residual < limit ? residual : limit;
  return residual > -limit ? residual : -limit;
}

}  // namespace slimpi::kernels
