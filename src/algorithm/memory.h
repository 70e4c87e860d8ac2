// SPDX-License-Identifier: BSD-3-Clause
// Memory that outlives a call: owned, of one device and place, growing and never shrinking.
#pragma once
#include <cstddef>

#include "base/statistics.h"
#include "device/device.h"

namespace slimpi::algorithm {

// Under which heading the report counts the memory.
enum class Held { scratch, state };

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory() { release(); }

  // Makes room for `bytes` near `like`. What was in it is lost when it grows or changes device.
  Status reserve(const device::Device& device, const void* like, device::Place place,
                 std::size_t bytes, Statistics& statistics, Held held = Held::scratch);
  void release();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void swap(Memory& other) noexcept;
  void count(std::int64_t bytes_more);

  const device::Device* device_ = nullptr;
  int unit_ = 0;
  device::Place place_ = device::Place::device;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Statistics* statistics_ = nullptr;
  Held held_ = Held::scratch;
};

}  // namespace slimpi::algorithm
