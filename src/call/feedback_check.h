// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY with error feedback in quantized buckets: whether every element of the result is
// within the bound of algorithm/error_feedback.h, computed from the ranks' values.
//
// Where a bucket begins depends on the schedule. A bucket has no more elements than a block of
// Format::bucket elements, so it lies within its element's block and the two beside it, and its
// step is at most that of all their values; so the bound that is checked is somewhat wider.
#pragma once
#include <cstddef>

#include "comm/call.h"

namespace slimpi::call {

class FeedbackCheck {
 public:
  // `memory` has bytes_of(call), aligned to 8, and outlives this object.
  FeedbackCheck(const comm::Call& call, std::byte* memory);
  static std::size_t bytes_of(const comm::Call& call);

  // Whether there is anything to check; the same on all ranks.
  static bool applies(const comm::Call& call);

  // What the ranks' values allow, all together: `in` are this rank's. Collective.
  Status add_up(const float* in);

  // After add_up(). Counts elements beyond the bound, and warns of the first.
  void compare(const float* exact, const float* result) const;

 private:
  // Of the values of a block and the two beside it: what is added over the ranks.
  struct Block {
    double step, magnitude;  // their step, and their greatest magnitude
  };
  struct Extent {
    double least, greatest;
  };
  Extent extent_of(const float* values, std::uint64_t block) const;
  double step_of(const float* values, std::uint64_t block, double* magnitude) const;

  const comm::Call& call_;
  const std::uint64_t length_, blocks_;  // elements of a block, and how many blocks
  const double last_level_;
  Block* const sums_;
};

}  // namespace slimpi::call
