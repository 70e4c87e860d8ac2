// SPDX-License-Identifier: BSD-3-Clause
// Bounds how far error feedback can change one sum. Error feedback adds the residual, which is what
// compression lost in earlier calls, but the residual may belong to another tensor
// (comm/tensor_state.h) and therefore is not trusted. For codecs with buckets the kernels apply the
// limit themselves (kernels/math/feedback.h).
#pragma once
#include "comm/call.h"

namespace slimpi::algorithm {

// Returns the largest safe magnitude of input values with error feedback: if no value on any of
// `ranks` ranks is larger, nothing overflows with this codec, neither a node's sum nor a sum with a
// residual nor a decoded value. A call with larger values runs without error feedback, and leaves
// the residuals as they were.
float safe_limit(const kernels::Format& format, int ranks);

// Returns the factor f of the guarantee of slimpi(7) for quantized buckets. For any residuals
//   |result - exact sum| <= f (u_1 + ... + u_n + u)
// u_i is the quantization step in the bucket of node i, u the step in the bucket of the nodes' sum.
// Both are steps for the values without residuals.
double most_steps(const kernels::Format& format);

// Returns a bound of |decoded - original| for one encoding by packed. It holds if no value of the
// bucket is larger in magnitude than `bucket`, and no value of its tile is larger than `tile`.
// With `feedback` it holds for any residuals. The bound f(bucket, tile, nodes) is concave, and
// f(c b, c t, c n) = c f(b, t, n). So if `bucket` and `tile` are sums of the magnitudes of `nodes`
// nodes, the bound is at least the sum of the bounds of these nodes.
double most_packed_error(const kernels::Format& format, double bucket, double tile, bool feedback,
                         int nodes = 1);

// The residuals of low-rank sums and of hooks are not clamped, because no bucket gives a step for
// that. Instead the L2 norm of a residual is limited to kResidualNorms times that of the values
// that it is added to (those of a matrix, or of a segment that a hook encodes). One factor scales a
// larger residual down, so that its direction stays.

// The largest norm of a residual, in norms of the values. A lower limit would also cut residuals
// that belong to the tensor, and cost accuracy (docs/DESIGN.md).
constexpr double kResidualNorms = 32;

// Returns the factor for the residual, 0 to 1, from the sums of squares of the values and of the
// residual. It is 0 if one of these sums is not finite, or if all values are zero and the residual
// is not.
float residual_factor(double values, double residual);

}  // namespace slimpi::algorithm
