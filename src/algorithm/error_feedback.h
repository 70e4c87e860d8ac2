// SPDX-License-Identifier: BSD-3-Clause
// A step whose sum is not finite leaves what error feedback keeps as it was, on all ranks. Values
// that are not finite are seen before the call. Finite ones whose sum overflows are not: where they
// are so large that it might, every rank keeps a copy of its residual until it sees the result.
#pragma once
#include "algorithm/algorithm.h"
#include "comm/memory.h"

namespace slimpi::algorithm {

// Where no value and no residual of `ranks` ranks is beyond it, no sum of theirs in this codec
// overflows: node sums, residuals added, and what they are decoded to.
float safe_limit(const kernels::Format& format, int ranks);

// This rank's residual; null, and none, where it keeps none.
struct Residual {
  float* data = nullptr;
  std::uint64_t count = 0;
};
Residual residual_of(const comm::TensorState& slot);

class KeptResidual {
 public:
  // Copies the call's residual.
  Status keep(const comm::Call& call);
  bool holds() const { return count_ != 0; }

  // After the call: puts the copy back if the result is not finite, which all ranks see alike.
  Status restore_unless_finite(const comm::Call& call);

 private:
  Status copy(comm::Communicator& communicator, const float* from, float* to);

  comm::Memory copy_;
  std::uint64_t count_ = 0;
};

}  // namespace slimpi::algorithm
