// SPDX-License-Identifier: BSD-3-Clause
// What error feedback may do to one sum. A residual may be of another tensor
// (comm/tensor_state.h), so nothing is believed of it. In buckets the kernels clamp what is added
// of it (kernels/math/feedback.h).
#pragma once
#include "comm/call.h"

namespace slimpi::algorithm {

// If no input value of `ranks` ranks is larger in magnitude than this limit, nothing overflows with
// this codec: no node sum, no sum with a residual, and no decoded value. A call with larger values
// is done without error feedback, and leaves the residuals as they were.
float safe_limit(const kernels::Format& format, int ranks);

// With quantized buckets, the guarantee of slimpi(7): a result is no further from the exact sum
// than this many steps of each node's bucket plus as many of the bucket of their sum, whatever the
// residuals are. The buckets are those of the values without residuals.
double most_steps(const kernels::Format& format);

// The bound of one encoding by packed: how far a value may come out from what it was, where no
// value of its bucket exceeds the magnitude `bucket` and none of its tile `tile`; with `feedback`,
// whatever the residuals are. Concave, and of degree 1 in both magnitudes and the number of nodes:
// with the sums of the magnitudes of so many nodes, at least the sum of their bounds.
double most_packed_error(const kernels::Format& format, double bucket, double tile, bool feedback,
                         int nodes = 1);

// How much of a residual is used where no bucket gives a step to clamp it to: with low-rank sums
// and with hooks. Its L2 norm is limited by that of the values that it is added to: of a matrix, or
// of a segment that a hook encodes. What is above the limit is dropped, by a factor for all
// elements, so that the direction stays.

// The most that is used of a residual, in norms of the values. A lower limit cuts residuals of the
// right tensor, too, and costs accuracy (docs/DESIGN.md).
constexpr double kResidualNorms = 32;

// The factor for the residual, 0 to 1, from the sums of the squares of the values and of the
// residual. 0 where all values are zero, and where a value or the residual is not finite.
float residual_factor(double values, double residual);

}  // namespace slimpi::algorithm
