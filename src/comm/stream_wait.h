// SPDX-License-Identifier: BSD-3-Clause
// Lets a thread or a stream wait for work of a device, by an event. If an exchange is given,
// messages make progress while the thread waits, and the wait fails once another rank has reported
// a failure. A wait during a schedule must have an exchange, because without progress another rank
// could hang, waiting for messages of this one.
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/waiter.h"
#include "device/device.h"
#include "observe/trace.h"

namespace slimpi::comm {

// Waits until the stream has passed `event`.
inline Status wait_for_event(const device::DeviceStream& on, std::uint64_t event,
                             PointToPoint* exchange) {
  return wait_until(Waiter::Poll::device, exchange,
                    [&](bool* done) { return on.device.query(on.stream, event, done); });
}

// Makes work that is queued on `later` from now on wait for the work that is queued on `earlier` by
// now. *number, unless null, is set to the number of the event that this records on `earlier`.
inline Status hold_up(const device::Device& device, device::Stream* later, device::Stream* earlier,
                      std::uint64_t* number = nullptr) {
  std::uint64_t event = 0;
  SLIMPI_TRY(device.record(earlier, &event));
  if (number != nullptr) *number = event;
  return device.wait_event(later, earlier, event);
}

// Waits until everything queued on the stream is done.
inline Status synchronize(const device::DeviceStream& on, PointToPoint* exchange = nullptr) {
  // The host does its work in the calling thread.
  if (&on.device == &device::host()) return Status::ok;
  std::uint64_t event = 0;
  SLIMPI_TRY(on.device.record(on.stream, &event));
  return wait_for_event(on, event, exchange);
}

// Queues a copy on the stream and waits for it, so that `from` and `to` may be reused. The trace
// shows it as `name`, which is "copy out" or "copy in" as seen from the device.
inline Status copy_and_wait(const device::DeviceStream& on, const char* name, void* to,
                            const void* from, std::size_t bytes, PointToPoint* exchange = nullptr) {
  const Slice slice(name, bytes);
  SLIMPI_TRY(on.device.copy(to, from, bytes, on.stream));
  return synchronize(on, exchange);
}

}  // namespace slimpi::comm
