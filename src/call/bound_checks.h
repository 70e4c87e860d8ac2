// SPDX-License-Identifier: BSD-3-Clause
// The checks of SLIMPI_VERIFY of a result against a bound of its error. A bound holds for any
// tensor state:
//   error feedback in quantized buckets    each element: algorithm/residual_limit.h
//   packed, also without feedback          each element: algorithm/residual_limit.h
//   low-rank algorithms                    each matrix: algorithm/powersgd.h
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/call.h"

namespace slimpi::call {

// The exact sum, and the range of the result that the rank has.
struct Verified {
  const float *exact, *result;
  comm::Range range;
};

// A check. Each rank computes some words of its input. The bound follows from their sums over the
// ranks.
struct BoundCheck {
  bool (*applies)(const comm::Call& call);
  // Returns the number of words.
  std::size_t (*word_count)(const comm::Call& call);
  // Fills in the words of this rank from its input `in`.
  void (*fill)(const comm::Call& call, const float* in, double* words);
  // Counts the elements beyond the bound, and warns of the first. `words`: the sums over the ranks.
  void (*compare)(const comm::Call& call, const Verified& verified, const double* words);
};

// Returns the check for a call of floats; null if there is none. The same on all ranks.
const BoundCheck* bound_check_of(const comm::Call& call);

// Adds to the count of wrong elements in the report.
void count_beyond(const comm::Call& call, std::uint64_t elements);

}  // namespace slimpi::call
