// SPDX-License-Identifier: BSD-3-Clause
#include "comm/find_beyond.h"

#include "comm/communicator.h"
#include "comm/stream_wait.h"

namespace slimpi::comm {

// The kernel writes to device memory, and the host reads a copy: a kernel cannot reach the host's
// stack.
Status find_beyond(const Call& call, const device::Location& location, const float* data,
                   std::uint64_t count, float limit, bool* found) {
  const device::Device& device = *location.device;
  Statistics& statistics = call.communicator.statistics();
  CallScratch& scratch = call.scratch;
  device::Stream* stream = nullptr;
  SLIMPI_TRY(call.communicator.stream_for(location, &stream));
  SLIMPI_TRY(scratch.found.reserve(location, device::Place::device, sizeof(int), statistics));
  SLIMPI_TRY(scratch.found_copy.reserve(location, device::Place::staging, sizeof(int), statistics));
  int* const flag = reinterpret_cast<int*>(scratch.found.data());
  int* const here = reinterpret_cast<int*>(scratch.found_copy.data());
  device.kernels()->find_beyond(data, limit, count, flag, stream);
  SLIMPI_TRY(device.copy(here, flag, sizeof *here, stream));
  SLIMPI_TRY(synchronize(device, stream));
  *found = *here != 0;
  return Status::ok;
}

}  // namespace slimpi::comm
