// SPDX-License-Identifier: BSD-3-Clause
// Memory for the small objects and lists of one call. What is freed is kept, by powers of two, for
// the next object of that size, so a call like the one before allocates nothing. Not the
// standard's pools: those of GCC 12 crash at the first allocation after one that had no memory.
#pragma once
#include <array>
#include <cstddef>
#include <memory_resource>

namespace slimpi::comm {

// Used by one thread at a time. Objects must be gone before the pool.
class ObjectPool : public std::pmr::memory_resource {
 public:
  ObjectPool() = default;
  ~ObjectPool() override;
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  std::size_t held() const { return held_; }  // bytes, in use or free

 private:
  // A free block begins with the address of the next one of its size.
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kLeast = 32;  // bytes of the smallest block

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::array<Free*, 64> free_{};  // by the logarithm of the size
  std::size_t held_ = 0;
};

}  // namespace slimpi::comm
