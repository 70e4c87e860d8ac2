// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <algorithm>
#include <cmath>

namespace slimpi::algorithm {

// Returns the limit a = greatest / (most N) for N ranks, where `most` exceeds all factors of N a
// below by a margin for rounding. If no input exceeds a, the sum of a node with k ranks is at most
// k a.
//
// Quantized: a step is at most 2 k a, and a residual at most two steps.
//   sum of a node    with its residual k a + 2 * 2 k a = 5 k a; decoding does not increase it
//   sum of all       at its owner 5 N a; with the owner's residual 25 N a
// Packed: a step is at most 9/4 of the greatest value, and a residual at most four steps.
//   sum of a node    with its residual k a + 4 * 9/4 k a = 10 k a; at most 9/8 of it when decoded
//   sum of all       with the owner's residual less than 113 N a; when decoded less than 127 N a
// Value codec: a clamped residual is less than 1/64 of its value.
float safe_limit(const kernels::Format& format, int ranks) {
  const float most = format.codec == kernels::Codec::packed      ? 128
                     : format.codec == kernels::Codec::quantized ? 32
                                                                 : 4;
  return kernels::row_of(format.codec).greatest / (most * float(ranks));
}

// Returns the largest clamped residual, in quantization steps; see the clamp in
// kernels/math/feedback.h.
double most_steps(const kernels::Format& format) {
  const double last_level = double((1 << format.bits) - 1);
  return format.stochastic || format.bits == 1 ? 2 : 1.5 + 1 / last_level;
}

// Returns the bound, which is derived from kernels/math/packed.h as follows. Let b = floor(bits), t
// the greatest scale of the tile, and s the scale of a bucket.
//   1  A tile has room for b - 1 bits in each bucket. With a level of detail that is higher by 1
//      the bits do not fit, so some bucket, and hence the one of scale t, would have b bits. The
//      bits of scale t before rounding down are therefore at least b - 1/8.
//   2  Each scale number from t down to s (8 in an octave) costs scale s 1/16 of a bit. Rounding
//      these numbers and the width costs less than 7/8 + 0.11 of a bit.
//   3  The step of scale s is therefore at most 2^(2.11 - b) sqrt(s t), and at most 2 s. With width
//      16 it is 2^-15 s. Buckets more than 15.7 octaves below t become zeros; their step is below
//      2^-14 t.
//   4  A value loses at most the scale of its bucket.
// With feedback, the number of the greatest scale of width 0 is less than that of t plus 17 - 16 b,
// so this scale is less than 1.35 * 2^(2 - 2b) t, or else it is the scale of the base.
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

// The arguments are sums of squares of floats in double, which neither overflow nor underflow.
float residual_factor(double values, double residual) {
  if (!std::isfinite(values) || !std::isfinite(residual)) return 0;
  const double limit = kResidualNorms * kResidualNorms * values;
  return residual <= limit ? 1.0f : float(std::sqrt(limit / residual));
}

}  // namespace slimpi::algorithm
