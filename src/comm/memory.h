// SPDX-License-Identifier: BSD-3-Clause
// Memory that outlives a call. It is owned, and grows but never shrinks. There is one block for
// each location and place that it was ever reserved on, so that a program which alternates between
// devices allocates nothing new.
#pragma once
#include <cstddef>
#include <vector>

#include "device/device.h"
#include "observe/statistics.h"

namespace slimpi::comm {

// The kind of memory under which the report counts it.
enum class Held { scratch, state };

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { release(); }

  // Makes data() a block of at least `bytes` at the location. The contents are lost when
  // the block grows or the device changes.
  Status reserve(const device::Location& location, device::Place place, std::size_t bytes,
                 Statistics& statistics, Held held = Held::scratch);
  void release();

  std::byte* data() const { return blocks_.empty() ? nullptr : blocks_.front().data; }
  // Where data() is.
  device::Location location() const {
    return blocks_.empty() ? device::Location() : blocks_.front().location;
  }
  std::size_t size() const { return blocks_.empty() ? 0 : blocks_.front().size; }

 private:
  struct Block {
    device::Location location;
    device::Place place;
    std::byte* data;
    std::size_t size;
    Statistics* statistics;
    Held held;
  };
  static void count(const Block& block, std::int64_t bytes_more);
  static void free(const Block& block);

  std::vector<Block> blocks_;  // the one reserved last comes first
};

}  // namespace slimpi::comm
