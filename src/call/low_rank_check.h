// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY with a low-rank algorithm: whether the result of every matrix is within the bound
// of algorithm/powersgd.h, computed from the ranks' values.
#pragma once
#include <cstddef>

#include "algorithm/powersgd.h"
#include "comm/call.h"

namespace slimpi::call {

class LowRankCheck {
 public:
  // `memory` has bytes_of(call), aligned to 8, and outlives this object.
  LowRankCheck(const comm::Call& call, std::byte* memory);
  static std::size_t bytes_of(const comm::Call& call);

  // Whether there is anything to check; the same on all ranks.
  static bool applies(const comm::Call& call);

  // What the ranks' values allow, all together: `in` are this rank's. Collective.
  Status add_up(const float* in);

  // After add_up(). Counts the elements of matrices beyond the bound, and warns of the first.
  void compare(const float* exact, const float* result) const;

 private:
  const comm::Call& call_;
  const algorithm::Matrices matrices_;
  double* const norms_;  // of each matrix: the sum of the ranks' L2 norms
};

}  // namespace slimpi::call
