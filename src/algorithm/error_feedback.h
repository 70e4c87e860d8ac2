// SPDX-License-Identifier: BSD-3-Clause
// What error feedback may do to one sum. The residuals belong to comm::TensorStates; the kernels
// clamp what is added of them (kernels/math/feedback.h).
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

}  // namespace slimpi::algorithm
