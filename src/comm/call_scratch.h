// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory of calls. A process has as many sets of it as it ever had calls at the same time,
// whatever the number of communicators: a call takes one and gives it back.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "comm/memory.h"

namespace slimpi::comm {

// One set. Each memory holds what a call reserved last; nothing in it outlives the call.
struct CallScratch {
  Memory messages, staging, partial;   // of the schedules
  Memory found;                        // what find_nonfinite writes
  Memory kept, check;                  // of SLIMPI_MAX_ERROR; bounded_exchange.cpp
  Memory factors, device_factors;      // of the low-rank schedules
  Memory node_messages, node_staging;  // messages inside a node in place of shared memory
};

class CallScratchPool {
 public:
  // Of this process; never destroyed, as exit handlers may still call MPI when statics are gone.
  static CallScratchPool& instance();

  // The set that was given back last, or a new one. Throws std::bad_alloc.
  std::unique_ptr<CallScratch> take();
  void release(std::unique_ptr<CallScratch> set);

  // Communicators that may make calls: without any, no memory is kept.
  void add_user();
  void remove_user();

  std::size_t free_sets();

 private:
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<CallScratch>> free_;
  int users_ = 0;
};

// A set for the time of one call.
class CallScratchLease {
 public:
  CallScratchLease() = default;
  ~CallScratchLease() {
    if (set_ != nullptr) CallScratchPool::instance().release(std::move(set_));
  }
  CallScratchLease(const CallScratchLease&) = delete;
  CallScratchLease& operator=(const CallScratchLease&) = delete;

  CallScratch* take() {
    if (set_ == nullptr) set_ = CallScratchPool::instance().take();
    return set_.get();
  }

 private:
  std::unique_ptr<CallScratch> set_;
};

}  // namespace slimpi::comm
