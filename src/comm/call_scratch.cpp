// SPDX-License-Identifier: BSD-3-Clause
#include "comm/call_scratch.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace slimpi::comm {

ObjectPool::~ObjectPool() {
  for (Free* block : free_)
    while (block != nullptr) {
      Free* const next = block->next;
      ::operator delete(block);
      block = next;
    }
}

void* ObjectPool::do_allocate(std::size_t bytes, std::size_t alignment) {
  // operator new guarantees no more, and no object of a call needs more.
  if (alignment > alignof(std::max_align_t)) throw std::bad_alloc();
  const std::size_t size = std::bit_ceil(std::max(bytes, kLeast));
  Free*& first = free_[std::size_t(std::countr_zero(size))];
  if (first == nullptr) {
    void* const made = ::operator new(size);
    held_ += size;
    return made;
  }
  Free* const block = first;
  first = block->next;
  return block;
}

void ObjectPool::do_deallocate(void* memory, std::size_t bytes, std::size_t) {
  // The same size as at the allocation, from the same `bytes`: blocks carry no length.
  const std::size_t size = std::bit_ceil(std::max(bytes, kLeast));
  Free*& first = free_[std::size_t(std::countr_zero(size))];
  first = new (memory) Free{first};
}

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
