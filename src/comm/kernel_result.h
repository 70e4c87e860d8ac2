// SPDX-License-Identifier: BSD-3-Clause
// Brings a few values that a kernel computes to the host. A kernel cannot write to the host's
// stack, so it writes them to memory of the device, and fetch() queues a copy to the host.
#pragma once
#include "comm/call.h"
#include "comm/communicator.h"
#include "comm/stream_wait.h"

namespace slimpi::comm {

// `count` values in the scratch memory of a call, valid until the call opens the next result.
template <typename T, std::size_t count = 1>
class KernelResult {
 public:
  // Reserves the memory in advance, so that a later open() cannot fail for lack of it.
  static Status reserve(const Call& call, const device::Location& location) {
    KernelResult result;
    return result.open(call, location);
  }

  Status open(const Call& call, const device::Location& location) {
    Statistics& statistics = call.communicator.statistics();
    Memory &found = call.scratch.found, &copy = call.scratch.found_copy;
    SLIMPI_TRY(found.reserve(location, device::Place::device, kBytes, statistics));
    SLIMPI_TRY(copy.reserve(location, device::Place::staging, kBytes, statistics));
    device_ = location.device;
    found_ = reinterpret_cast<T*>(found.data());
    copy_ = reinterpret_cast<T*>(copy.data());
    return Status::ok;
  }

  // Returns the memory for the kernel to write.
  T* found() const { return found_; }

  // Queues the copy after the kernel.
  Status fetch(device::Stream* stream) const {
    return device_->copy(copy_, found_, kBytes, stream);
  }

  // Returns the host's copy, valid once the stream has passed fetch().
  const T* copy() const { return copy_; }

 private:
  static constexpr std::size_t kBytes = count * sizeof(T);
  const device::Device* device_ = nullptr;
  T *found_ = nullptr, *copy_ = nullptr;
};

// Sets *found to whether one of the `count` floats at `data`, in memory of the location, is a NaN
// or has a magnitude above the limit. Waits for the location's stream. Does not communicate.
inline Status find_beyond(const Call& call, const device::Location& location, const float* data,
                          std::uint64_t count, float limit, bool* found) {
  const device::Device& device = *location.device;
  device::Stream* stream = nullptr;
  SLIMPI_TRY(call.communicator.stream_for(location, &stream));
  KernelResult<int> flag;
  SLIMPI_TRY(flag.open(call, location));
  device.kernels()->find_beyond(data, limit, count, flag.found(), stream);
  SLIMPI_TRY(flag.fetch(stream));
  // Synchronize here, because the caller decides by *found before it queues anything else.
  SLIMPI_TRY(synchronize({device, stream}));
  *found = *flag.copy() != 0;
  return Status::ok;
}

}  // namespace slimpi::comm
