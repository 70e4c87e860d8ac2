// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <algorithm>
#include <cmath>

namespace slimpi::algorithm {

// Returns the limit a. Let N be the number of ranks. A node of k ranks has values of at most k a,
// in a bucket with a step of at most 2 k a. So the values with a residual, of at most two steps,
// are at most 5 k a, and they decode to no more. The sum of all nodes is at most 5 N a, with the
// owner's residual 25 N a. With the packed codec a step is at most 9/4 of the greatest values, and
// a residual is at most four steps. So the values are at most 10 k a, and decode to no more than
// 9/8 of that; the sum and the owner's residual make less than 113 N a, which decodes to 127 N a.
// With a value codec, a clamped residual is less than 1/64 of its value. The rest is a margin for
// rounding.
float safe_limit(const kernels::Format& format, int ranks) {
  const float most = format.codec == kernels::Codec::packed      ? 128
                     : format.codec == kernels::Codec::quantized ? 32
                                                                 : 4;
  return kernels::row_of(format.codec).greatest / (most * float(ranks));
}

// Returns the most steps, which follow from kernels/math/feedback.h.
double most_steps(const kernels::Format& format) {
  const double last_level = double((1 << format.bits) - 1);
  return format.stochastic || format.bits == 1 ? 2 : 1.5 + 1 / last_level;
}

// Returns the bound, which follows from kernels/math/packed.h, with b = floor(bits). A tile has
// room for b - 1 bits in each of its buckets. With a level of detail more the bits do not fit, so
// some bucket has b bits then, and so has the bucket with the greatest scale t: its level is at
// most an eighth of a bit short of b. A scale s has a sixteenth of a bit less for each of the
// numbers between it and t, of which an octave has 8; the steps of these numbers and of the width
// cost less than 7/8 + 0.11 of a bit. So a step is at most 2^(2.11 - b) sqrt(s t), and not more
// than 2 s. With 16 bits it is 2^-15 s. Buckets of more than 15.7 octaves below t become zeros, and
// their step is below 2^-14 t. A bucket loses no more than its scale.
//
// With feedback: the greatest scale without bits is less than 17 - 16 b numbers above t, which is
// less than 1.35 * 2^(2 - 2b) t; or it is the scale of the base.
double most_packed_error(const kernels::Format& format, double bucket, double tile, bool feedback,
                         int nodes) {
  const int bits = format.bits / 2;
  const double scale = 1.125 * bucket, top = 1.125 * tile, least = nodes * 0x1p-110;
  const auto step = [&](double s) {
    return std::exp2(2.11 - bits) * std::sqrt(s) * std::sqrt(top) + 0x1p-15 * s;
  };
  if (!feedback) return std::min(scale, step(scale) + 0x1p-15 * top + least);
  const double without_bits = (1.35 * std::exp2(2 - 2 * bits) + 0x1p-14) * top + 2 * least;
  const auto added = [&](double s) { return 4 * (std::min(2 * s, step(s)) + without_bits); };
  return added(scale) +
         most_packed_error(format, bucket + added(scale), tile + added(top), false, nodes);
}

// Returns the factor. No square of a float, nor a sum of squares, overflows or underflows in
// double.
float residual_factor(double values, double residual) {
  if (!std::isfinite(values) || !std::isfinite(residual)) return 0;
  const double limit = kResidualNorms * kResidualNorms * values;
  return residual <= limit ? 1.0f : float(std::sqrt(limit / residual));
}

}  // namespace slimpi::algorithm
