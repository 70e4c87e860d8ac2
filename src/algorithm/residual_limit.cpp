// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <algorithm>
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

// From kernels/math/packed.h, with b = floor(bits). A tile has room for b - 1 bits in each of its
// buckets. With a level of detail more they do not fit, so some bucket has b bits then, and so has
// the one with the greatest scale t: its level is at most an eighth of a bit short of b. A scale s
// has a sixteenth of a bit less for each of the numbers between it and t, of which an octave has 8;
// the steps of these numbers and of the width cost less than 7/8 + 0.11 of a bit. So a step is at
// most 2^(2.11 - b) sqrt(s t), and not more than 2 s. With 16 bits it is 2^-15 s. Buckets of more
// than 15.7 octaves below t become zeros, and their step is below 2^-14 t. A bucket loses no more
// than its scale.
double most_packed_error(const kernels::Format& format, double bucket, double tile, bool feedback) {
  const double scale = 1.125 * bucket, top = 1.125 * tile;
  const auto step = [&](double s, double t) {
    return std::exp2(2.11 - format.bits / 2) * std::sqrt(s) * std::sqrt(t) + 0x1p-15 * s;
  };
  if (!feedback)
    return std::min(scale, step(scale, top) + 0x1p-15 * top + 0x1p-110) +
           std::max(0.0, bucket - 0x1.ep127);
  const double added = std::min(2 * scale, step(scale, top)) + 0x1p-14 * top + 0x1p-109;
  const double in_tile = std::min(2 * top, step(top, top)) + 0x1p-14 * top + 0x1p-109;
  return added + most_packed_error(format, bucket + added, tile + in_tile, false);
}

// No square of a float, nor a sum of them, overflows or underflows in double.
float residual_factor(double values, double residual) {
  if (!std::isfinite(values) || !std::isfinite(residual)) return 0;
  const double limit = kResidualNorms * kResidualNorms * values;
  return residual <= limit ? 1.0f : float(std::sqrt(limit / residual));
}

}  // namespace slimpi::algorithm
