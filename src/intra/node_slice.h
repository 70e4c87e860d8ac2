// SPDX-License-Identifier: BSD-3-Clause
// A slice of the trace for one step of a call inside the node, from construction to destruction.
// Does nothing unless a trace runs. A device only queues its steps; its row shows its copies
// (copies.h).
#pragma once
#include <cstdint>

#include "base/trace.h"
#include "comm/call.h"

namespace slimpi::intra {

class NodeSlice {
 public:
  // `name`: a literal. `bytes`: what the step writes; without any there is no slice.
  NodeSlice(const comm::Call& call, const char* name, std::uint64_t bytes)
      : trace_(call.device.staged || bytes == 0 ? nullptr : Trace::running()),
        name_(name),
        bytes_(bytes) {
    if (trace_ != nullptr) begin_ = Trace::Clock::now();
  }
  ~NodeSlice() {
    if (trace_ != nullptr) trace_->add(name_, begin_, Trace::Clock::now(), bytes_);
  }
  NodeSlice(const NodeSlice&) = delete;
  NodeSlice& operator=(const NodeSlice&) = delete;

 private:
  Trace* const trace_;
  const char* const name_;
  const std::uint64_t bytes_;
  Trace::Clock::time_point begin_{};
};

}  // namespace slimpi::intra
