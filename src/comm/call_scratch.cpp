// SPDX-License-Identifier: BSD-3-Clause
#include "comm/call_scratch.h"

#include <utility>

namespace slimpi::comm {

CallScratchPool& CallScratchPool::instance() {
  static auto* const pool = new CallScratchPool;
  return *pool;
}

std::unique_ptr<CallScratch> CallScratchPool::take() {
  {
    const std::lock_guard lock(mutex_);
    // The last set is the one whose memory is most likely in the caches and large enough.
    if (!free_.empty()) {
      auto set = std::move(free_.back());
      free_.pop_back();
      return set;
    }
  }
  return std::make_unique<CallScratch>();
}

// If there is no memory to extend the list, the set is freed.
void CallScratchPool::release(std::unique_ptr<CallScratch> set) {
  const std::lock_guard lock(mutex_);
  // Without a communicator nobody would free the list later, so the set ends here.
  if (users_ == 0) return;
  try {
    free_.push_back(std::move(set));
  } catch (const std::bad_alloc&) {
  }
}

void CallScratchPool::add_user() {
  const std::lock_guard lock(mutex_);
  ++users_;
}

// The sets are freed outside the lock, because a device driver may take long to free memory.
void CallScratchPool::remove_user() {
  std::vector<std::unique_ptr<CallScratch>> last;
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) last.swap(free_);
}

}  // namespace slimpi::comm
