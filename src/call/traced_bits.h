// SPDX-License-Identifier: BSD-3-Clause
// What slices of the trace say about the codec of a call.
#pragma once
#include "base/trace.h"
#include "comm/call.h"

namespace slimpi::call {

// Of a value between nodes, for the trace; 0 where a hook or SLIMPI_MAX_ERROR decides.
inline int bits_of(const comm::Plan& plan) {
  if (plan.hook != nullptr || plan.max_error > 0) return 0;
  return kernels::value_bits(plan.format);
}

// While this object lives, slices of the thread show the bits of the plan.
class TracedBits {
 public:
  explicit TracedBits(const comm::Plan& plan) : traces_(Trace::running() != nullptr) {
    if (traces_) Trace::set_bits(bits_of(plan));
  }
  ~TracedBits() {
    if (traces_) Trace::set_bits(0);
  }
  TracedBits(const TracedBits&) = delete;
  TracedBits& operator=(const TracedBits&) = delete;

 private:
  const bool traces_;
};

}  // namespace slimpi::call
