// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY compares the result of a sum with the exact sum. The checks here compare the error
// with a bound that slimpi guarantees. A bound holds for any tensor state (the residual or the
// low-rank factors that earlier calls have left):
//   error feedback in quantized buckets    bound of each element: algorithm/residual_limit.h
//   packed, also without feedback          bound of each element: algorithm/residual_limit.h
//   low-rank algorithms                    bound of each matrix: algorithm/powersgd.h
//   all-gathers                            bound of each element: that of its bucket, encoded once
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/call.h"

namespace slimpi::call {

// The exact sum, and the elements of the result that this rank has: `result` begins with element
// range.first of the sum.
struct Verified {
  const float *exact, *result;
  comm::Range range;
};

// One kind of check. Each rank computes numbers from its input, the words, whose sums over all
// ranks give the bound.
struct BoundCheck {
  bool (*applies)(const comm::Call& call);
  std::size_t (*word_count)(const comm::Call& call);
  // Fills in the words of this rank from its input `in`.
  void (*fill)(const comm::Call& call, const float* in, double* words);
  // Counts the elements beyond the bound, and warns of the first. `words`: the sums over the ranks.
  void (*compare)(const comm::Call& call, const Verified& verified, const double* words);
};

// Returns the check for a call of floats; null if there is none. The same on all ranks.
const BoundCheck* bound_check_of(const comm::Call& call);

// Adds the number of elements beyond their bound to the wrong elements in the report.
void count_beyond(const comm::Call& call, std::uint64_t elements);

}  // namespace slimpi::call
