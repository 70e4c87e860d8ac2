// SPDX-License-Identifier: BSD-3-Clause
// Bounds of what error feedback does to one sum. A residual may belong to another tensor
// (comm/tensor_state.h), so no value of it is trusted. In buckets the kernels clamp the part of it
// that is added (kernels/math/feedback.h).
#pragma once
#include "comm/call.h"

namespace slimpi::algorithm {

// Returns the limit of input values. If no input value of `ranks` ranks is larger in magnitude,
// nothing overflows with this codec: no node sum, no sum with a residual, and no decoded value. A
// call with larger values is done without error feedback, and leaves the residuals as they were.
float safe_limit(const kernels::Format& format, int ranks);

// Returns the guarantee of slimpi(7) for quantized buckets: whatever the residuals are, a result is
// no further from the exact sum than this many steps of each node's bucket plus as many steps of
// the bucket of their sum. These are the buckets of the values without residuals.
double most_steps(const kernels::Format& format);

// Returns a bound of |decoded - original| for one encoding by packed. It holds if no value of the
// bucket is larger in magnitude than `bucket`, and no value of its tile is larger than `tile`.
// With `feedback` it holds for any residuals. The bound f(bucket, tile, nodes) is concave, and
// f(c b, c t, c n) = c f(b, t, n). So if `bucket` and `tile` are sums of the magnitudes of `nodes`
// nodes, the bound is at least the sum of the bounds of these nodes.
double most_packed_error(const kernels::Format& format, double bucket, double tile, bool feedback,
                         int nodes = 1);

// A residual is used up to a limit if no bucket gives a step to clamp it to: with low-rank sums and
// with hooks. The limit of its L2 norm follows from the norm of the values to which it is added: of
// a matrix, or of a segment that a hook encodes. The part above the limit is dropped, by a factor
// for all elements, so that the direction stays.

// The largest norm of the used residual, in norms of the values. A lower limit also cuts residuals
// of the right tensor, and costs accuracy (docs/DESIGN.md).
constexpr double kResidualNorms = 32;

// Returns the factor for the residual, 0 to 1, from the sums of the squares of the values and of
// the residual. 0 if all values are zero, or if a value or the residual is not finite.
float residual_factor(double values, double residual);

}  // namespace slimpi::algorithm
