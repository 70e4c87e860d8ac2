// SPDX-License-Identifier: BSD-3-Clause
#include "comm/stream_wait.h"

#include "comm/waiter.h"
#include "observe/trace.h"

namespace slimpi::comm {

Status wait_for_event(const device::DeviceStream& on, std::uint64_t event, PointToPoint* exchange) {
  return wait_until(Waiter::Poll::device, exchange,
                    [&](bool* done) { return on.device.query(on.stream, event, done); });
}

Status hold_up(const device::Device& device, device::Stream* later, device::Stream* earlier,
               std::uint64_t* number) {
  std::uint64_t event = 0;
  SLIMPI_TRY(device.record(earlier, &event));
  if (number != nullptr) *number = event;
  return device.wait_event(later, earlier, event);
}

Status synchronize(const device::DeviceStream& on, PointToPoint* exchange) {
  // The host device does its work in the calling thread.
  if (&on.device == &device::host()) return Status::ok;
  std::uint64_t event = 0;
  SLIMPI_TRY(on.device.record(on.stream, &event));
  return wait_for_event(on, event, exchange);
}

Status copy_and_wait(const device::DeviceStream& on, const char* name, void* to, const void* from,
                     std::size_t bytes, PointToPoint* exchange) {
  const Slice slice(name, bytes);
  SLIMPI_TRY(on.device.copy(to, from, bytes, on.stream));
  // `from` and `to` may be used again when this returns.
  return synchronize(on, exchange);
}

}  // namespace slimpi::comm
