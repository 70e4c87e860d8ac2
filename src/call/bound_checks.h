// SPDX-License-Identifier: BSD-3-Clause
// The checks of SLIMPI_VERIFY that compare the error of a result with a bound that slimpi
// guarantees. A bound holds for any tensor state (the residual or the low-rank factors that earlier
// calls have left):
//   error feedback in quantized buckets    per element: algorithm/residual_limit.h
//   packed, with and without feedback      per element: algorithm/residual_limit.h
//   low-rank algorithms                    per matrix: algorithm/powersgd.h
//   all-gathers                            per element: the bound of its bucket, encoded once
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/call.h"

namespace slimpi::call {

// The exact sum, and the part of the result that this rank has: `result` begins with element
// range.first of the sum.
struct Verified {
  const float *exact, *result;
  comm::Range range;
};

// One kind of check. Each rank computes a few numbers from its input, called words. Their sums over
// all ranks determine the bound.
struct BoundCheck {
  bool (*applies)(const comm::Call& call);
  std::size_t (*word_count)(const comm::Call& call);
  // Computes this rank's words from its input `in`.
  void (*fill)(const comm::Call& call, const float* in, double* words);
  // Counts the elements that exceed the bound, and warns of the first. `words` are the sums over
  // the ranks.
  void (*compare)(const comm::Call& call, const Verified& verified, const double* words);
};

// Returns the check for a call of floats, or null if there is none. All ranks get the same answer.
const BoundCheck* bound_check_of(const comm::Call& call);

// Counts elements that exceed their bound among the wrong elements of the report.
void count_beyond(const comm::Call& call, std::uint64_t elements);

}  // namespace slimpi::call
