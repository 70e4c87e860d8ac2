// SPDX-License-Identifier: BSD-3-Clause
#include "comm/object_pool.h"

#include <algorithm>
#include <bit>
#include <new>

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

}  // namespace slimpi::comm
