// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <cmath>

namespace slimpi::algorithm {

// Let a be the limit and N the number of ranks. A node of k ranks has values of at most k a, in a
// bucket with a step of at most 2 k a. So with a residual they are at most 3 k a, and they decode
// to no more. The sum of all nodes is at most 3 N a, with the owner's residual 9 N a. With the
// packed codec a step is at most 9/4 of the values, so they are at most 13/4 k a, and decode to no
// more than 9/8 of that; the sum and the owner's residual make less than 12 N a. Of a value codec,
// a clamped residual is less than 1/64 of its value. The rest is a margin for rounding.
float safe_limit(const kernels::Format& format, int ranks) {
  const bool in_blocks =
      format.codec == kernels::Codec::quantized || format.codec == kernels::Codec::packed;
  const float most = in_blocks ? 16 : 4;
  return kernels::row_of(format.codec).greatest / (most * float(ranks));
}

// From kernels/math/feedback.h.
double most_steps(const kernels::Format& format) {
  const double last_level = double((1 << format.bits) - 1);
  return format.stochastic ? 2 + 2 / last_level : 1.5 + 1 / last_level;
}

// No square of a float, nor a sum of them, overflows or underflows in double.
float residual_factor(double values, double residual) {
  if (!std::isfinite(values) || !std::isfinite(residual)) return 0;
  const double limit = kResidualNorms * kResidualNorms * values;
  return residual <= limit ? 1.0f : float(std::sqrt(limit / residual));
}

}  // namespace slimpi::algorithm
