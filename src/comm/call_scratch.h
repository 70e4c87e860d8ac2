// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory of calls. A process has as many sets as it ever had calls at the same time,
// whatever the number of communicators. A call takes one set, owns it alone until it ends, and
// gives it back.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "comm/memory.h"
#include "comm/object_pool.h"

namespace slimpi::comm {

// One set of scratch memory. Each memory has the size that the last call reserved; its contents do
// not outlive the call.
struct CallScratch {
  Memory messages, staging, partial;   // of the inter-node schedules
  Memory found;                        // the result of find_beyond
  Memory found_copy;                   // the same in host memory, pinned where there is a GPU
  Memory kept, check;                  // for SLIMPI_MAX_ERROR; bounded_exchange.cpp
  Memory exact, result;                // on the host, for SLIMPI_VERIFY; verification.cpp
  Memory factors, device_factors;      // of the low-rank algorithm
  Memory pieces;                       // of sums inside a node that are made during the exchange
  Memory node_messages, node_staging;  // messages inside a node when there is no shared memory
  ObjectPool objects;                  // for lists that live no longer than the call
};

class CallScratchPool {
 public:
  // The pool of the process. It is never destroyed, because exit handlers may still call MPI after
  // static objects are destroyed.
  static CallScratchPool& instance();

  // The set that was given back last, or a new one. Throws std::bad_alloc.
  std::unique_ptr<CallScratch> take();
  void release(std::unique_ptr<CallScratch> set);

  // Counts the communicators that may make calls. With none left, the pool frees its memory.
  void add_user();
  void remove_user();

  std::size_t free_sets();

 private:
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<CallScratch>> free_;
  int users_ = 0;
};

// Holds one set for the duration of one call.
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
