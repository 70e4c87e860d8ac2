// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY where the error has a bound whatever the state is: whether the result is within it,
// computed from the ranks' values.
//   error feedback in quantized buckets    each element: algorithm/error_feedback.h
//   low-rank algorithms                    each matrix: algorithm/powersgd.h
#pragma once
#include <cstddef>

#include "comm/call.h"

namespace slimpi::call {

// What is checked is computed from `sums` numbers, which the ranks add.
struct BoundCheck {
  bool (*applies)(const comm::Call& call);
  std::size_t (*sums)(const comm::Call& call);
  // This rank's, of its values `in`.
  void (*find)(const comm::Call& call, const float* in, double* sums);
  // Counts elements beyond the bound, and warns of the first.
  void (*compare)(const comm::Call& call, const double* sums, const float* exact,
                  const float* result);
};

// The one for a call; null where there is none. The same on all ranks.
const BoundCheck* bound_check_of(const comm::Call& call);

}  // namespace slimpi::call
