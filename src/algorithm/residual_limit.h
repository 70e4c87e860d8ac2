// SPDX-License-Identifier: BSD-3-Clause
// Bounds how far error feedback can change one sum. The residual that error feedback adds (what
// compression lost in earlier calls) may belong to another tensor (comm/tensor_state.h), so it is
// not trusted. In codecs with buckets the kernels apply the limit themselves
// (kernels/math/feedback.h).
#pragma once
#include "comm/call.h"

namespace slimpi::algorithm {

// Returns the largest magnitude that input values may have with error feedback: if no value on any
// of `ranks` ranks exceeds it, neither a node's sum, nor a sum with a residual, nor a decoded value
// overflows in this codec. A call with larger values runs without error feedback and leaves the
// residuals as they are.
float safe_limit(const kernels::Format& format, int ranks);

// Returns the factor f of the guarantee of slimpi(7) for quantized buckets: for any residuals,
//   |result - exact sum| <= f (u_1 + ... + u_n + u)
// where u_i is the quantization step in the bucket of node i and u that in the bucket of the nodes'
// sum, each for the values without residuals.
double most_steps(const kernels::Format& format);

// Returns a bound of |decoded - original| for one encoding with the packed codec, if no value of
// the bucket exceeds `bucket` in magnitude and none of its tile exceeds `tile`. With `feedback`,
// the bound covers any residuals. As a function f(bucket, tile, nodes) it is concave, and f(c b, c
// t, c n) = c f(b, t, n), so if `bucket` and `tile` are sums over `nodes` nodes, the bound is at
// least the sum of the nodes' own bounds.
double most_packed_error(const kernels::Format& format, double bucket, double tile, bool feedback,
                         int nodes = 1);

// The residuals of low-rank sums and of hooks are limited here, because there is no bucket whose
// step could clamp them. The L2 norm of a residual may be at most kResidualNorms times that of the
// values it is added to (a matrix, or a segment that a hook encodes). A larger residual is scaled
// down by one factor, which keeps its direction.

// The largest norm of a residual, in norms of the values. A lower limit would also cut residuals
// that belong to the tensor, which costs accuracy (docs/DESIGN.md).
constexpr double kResidualNorms = 32;

// Returns the factor, 0 to 1, to scale the residual by. The arguments are the sums of squares of
// the values and of the residual. The factor is 0 if one of them is not finite, or if all values
// are zero and the residual is not.
float residual_factor(double values, double residual);

}  // namespace slimpi::algorithm
