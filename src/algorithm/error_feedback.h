// SPDX-License-Identifier: BSD-3-Clause
// A call whose sum is not finite leaves the residuals of error feedback unchanged on all ranks.
// Non-finite input is detected before the call. An overflow of finite input is detected only in the
// result. If the input is so large that the sum might overflow, every rank keeps a copy of its
// residual until the result is known. The residuals themselves belong to comm::TensorStates, which
// frees them (comm/tensor_state.cpp).
#pragma once
#include "algorithm/algorithm.h"
#include "comm/memory.h"

namespace slimpi::algorithm {

// If no input value and no residual of `ranks` ranks is larger in magnitude than this limit,
// nothing overflows with this codec: no node sum, no sum with a residual, and no decoded value.
float safe_limit(const kernels::Format& format, int ranks);

// This rank's residual in the tensor state; null and 0 if it has none. The tensor state owns it.
struct Residual {
  float* data = nullptr;
  std::uint64_t count = 0;
  device::Location location;
};
Residual residual_of(const comm::TensorState& state);

class KeptResidual {
 public:
  // Copies the residual of the call's tensor state.
  Status keep(const comm::Call& call);
  bool holds() const { return count_ != 0; }

  // After the call: restores the copy if the result is not finite. All ranks have the same result,
  // so all ranks decide the same.
  Status restore_unless_finite(const comm::Call& call);

 private:
  Status copy(const comm::Call& call, const float* from, float* to);

  comm::Memory copy_;
  std::uint64_t count_ = 0;
};

}  // namespace slimpi::algorithm
