// SPDX-License-Identifier: BSD-3-Clause
// Staging memory of calls that MPI does on copies. It is kept for later calls.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "base/statistics.h"
#include "comm/memory.h"
#include "device/device.h"

namespace slimpi::call {

// Staging memory at a location, and its stream. One call uses it at a time.
struct StagingBuffer {
  device::Location location;
  device::Stream* stream = nullptr;
  comm::Memory memory;
};

// Any thread.
class StagingPool {
 public:
  // Never destroyed: exit handlers may still call MPI after static destruction.
  static StagingPool& all() {
    static auto* const pool = new StagingPool;
    return *pool;
  }

  // Takes a free staging buffer of `bytes` at the location. Enlarges one or makes a new one where
  // none fits. It is the caller's until release(), also where this fails.
  Status take(const device::Location& location, std::size_t bytes, Statistics& statistics,
              StagingBuffer** buffer);
  void release(StagingBuffer* buffer);

 private:
  StagingBuffer* pick(const device::Location& location, std::size_t bytes);

  std::mutex mutex_;                                  // protects both below
  std::vector<std::unique_ptr<StagingBuffer>> made_;  // all of them
  std::vector<StagingBuffer*> free_;                  // those that no call uses
};

}  // namespace slimpi::call
