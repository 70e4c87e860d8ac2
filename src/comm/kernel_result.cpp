// SPDX-License-Identifier: BSD-3-Clause
#include "comm/kernel_result.h"

#include "comm/stream_wait.h"

namespace slimpi::comm {

Status find_beyond(const Call& call, const device::Location& location, const float* data,
                   std::uint64_t count, float limit, bool* found) {
  const device::Device& device = *location.device;
  device::Stream* stream = nullptr;
  SLIMPI_TRY(call.communicator.stream_for(location, &stream));
  KernelResult<int> flag;
  SLIMPI_TRY(flag.open(call, location));
  device.kernels()->find_beyond(data, limit, count, flag.found(), stream);
  SLIMPI_TRY(flag.fetch(stream));
  // The caller decides by *found before it queues anything else.
  SLIMPI_TRY(synchronize({device, stream}));
  *found = *flag.copy() != 0;
  return Status::ok;
}

Status reserve_find_beyond(const Call& call, const device::Location& location) {
  return KernelResult<int>::reserve(call, location);
}

}  // namespace slimpi::comm
