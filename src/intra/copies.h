// SPDX-License-Identifier: BSD-3-Clause
// Copies between a rank's device and memory that node-local ranks can access, on the call's stream.
// Copies that are completed by one wait are one interval in the trace; additions queued between
// them are included.
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/call.h"
#include "observe/trace.h"

namespace slimpi::intra {

class NodeCopies {
 public:
  explicit NodeCopies(const comm::Call& call) : call_(call) {}

  // Where the copied bytes are needed next: in this core's caches, or in memory (by non-temporal
  // stores, where the device has them).
  enum class Where { caches, memory };

  Status copy(void* to, const void* from, std::size_t bytes, Where where = Where::caches) {
    if (bytes_ == 0) queued_ = Trace::Clock::now();
    bytes_ += bytes;
    const bool past = where == Where::memory && call_.device.copy_nontemporal != nullptr;
    return (past ? call_.device.copy_nontemporal : call_.device.copy)(to, from, bytes,
                                                                      call_.stream);
  }

  // To be called when the stream has completed all that was queued; ends the trace interval.
  void done() {
    Trace* const trace = Trace::running();
    if (trace != nullptr && call_.device.staged && bytes_ != 0)
      trace->add("node copies", queued_, Trace::Clock::now(), bytes_, Trace::kDevice);
    bytes_ = 0;
  }

 private:
  const comm::Call& call_;
  Trace::Clock::time_point queued_{};
  std::uint64_t bytes_ = 0;  // since the last wait
};

// One step of a call inside the node in the trace. `bytes`: what the step writes. A device only
// queues its steps; its row shows its copies.
inline Slice node_slice(const comm::Call& call, const char* name, std::uint64_t bytes) {
  return Slice(name, call.device.staged ? 0 : bytes);
}

}  // namespace slimpi::intra
