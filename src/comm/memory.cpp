// SPDX-License-Identifier: BSD-3-Clause
#include "comm/memory.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace slimpi::comm {

Status Memory::reserve(const device::Location& location, device::Place place, std::size_t bytes,
                       Statistics& statistics, Held held) {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.location == location && block.place == place;
  });
  // After a reset a GPU has another location, so its old block is not found.
  if (found != blocks_.end() && bytes <= found->size) {
    // data() is the block in front.
    std::swap(*found, blocks_.front());
    return Status::ok;
  }
  // Free the old block first, because there may not be memory for both.
  if (found != blocks_.end()) {
    free(*found);
    blocks_.erase(found);
  }
  void* memory = nullptr;
  blocks_.reserve(blocks_.size() + 1);  // may throw, so before the allocation
  SLIMPI_TRY(location.device->allocate(location, bytes, place, &memory));
  const Block made{location, place, static_cast<std::byte*>(memory), bytes, &statistics, held};
  count(made, std::int64_t(bytes));
  blocks_.insert(blocks_.begin(), made);
  return Status::ok;
}

void Memory::release() {
  for (const Block& block : blocks_) free(block);
  blocks_.clear();
}

void Memory::free(const Block& block) {
  block.location.device->release(block.data, block.place);
  count(block, -std::int64_t(block.size));
}

// Adds the bytes to the counts of the block's statistics. The block keeps a pointer to these, so
// its bytes are later subtracted from the same counts.
void Memory::count(const Block& block, std::int64_t bytes_more) {
  if (block.held == Held::state)
    block.statistics->count(&Counts::state_bytes, std::uint64_t(bytes_more));
  else
    block.statistics->scratch(bytes_more);
}

ObjectPool::~ObjectPool() {
  for (Free* block : free_)
    while (block != nullptr) {
      Free* const next = block->next;
      ::operator delete(block);
      block = next;
    }
}

void* ObjectPool::do_allocate(std::size_t bytes, std::size_t alignment) {
  // operator new guarantees no larger alignment, and no object of a call needs one.
  if (alignment > alignof(std::max_align_t)) throw std::bad_alloc();
  const std::size_t size = std::bit_ceil(std::max(bytes, kLeast));
  Free*& first = free_[std::size_t(std::countr_zero(size))];
  if (first == nullptr) return ::operator new(size);
  Free* const block = first;
  first = block->next;
  return block;
}

void ObjectPool::do_deallocate(void* memory, std::size_t bytes, std::size_t) {
  // Computes the size like do_allocate(), because blocks do not store it.
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
    // The memory of the last set is the likeliest to be in the caches and large enough.
    if (!free_.empty()) {
      auto set = std::move(free_.back());
      free_.pop_back();
      return set;
    }
  }
  return std::make_unique<CallScratch>();
}

// Takes a set back. The set is freed if there is no memory to extend the list.
void CallScratchPool::release(std::unique_ptr<CallScratch> set) {
  const std::lock_guard lock(mutex_);
  // Without a communicator the list would never be freed, so the set is freed here.
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

// Removes a communicator. With the last one, the sets are freed, outside the lock, because a device
// driver may take long to free memory.
void CallScratchPool::remove_user() {
  std::vector<std::unique_ptr<CallScratch>> last;
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) last.swap(free_);
}

}  // namespace slimpi::comm
