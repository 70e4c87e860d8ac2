// SPDX-License-Identifier: BSD-3-Clause
// What slices of the trace say about the codec of a call.
#pragma once
#include "base/activity.h"
#include "comm/call.h"

namespace slimpi::call {

// Of a value between nodes, for the trace; 0 where a hook or SLIMPI_MAX_ERROR decides.
inline int bits_of(const comm::Plan& plan) {
  if (plan.hook != nullptr || plan.max_error > 0) return 0;
  return kernels::value_bits(plan.format);
}

// While this object lives, slices of the thread's call show the bits of the plan. The call may go
// on afterwards, in MPI.
class TracedBits {
 public:
  explicit TracedBits(const comm::Plan& plan) : call_(ActiveCall::current()) {
    if (call_ != nullptr) call_->traced.bits = std::uint8_t(bits_of(plan));
  }
  ~TracedBits() {
    if (call_ != nullptr) call_->traced.bits = 0;
  }
  TracedBits(const TracedBits&) = delete;
  TracedBits& operator=(const TracedBits&) = delete;

 private:
  ActiveCall* const call_;
};

}  // namespace slimpi::call
