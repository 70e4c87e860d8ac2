// SPDX-License-Identifier: BSD-3-Clause
#include "comm/stream_wait.h"

#include "base/trace.h"
#include "comm/waiter.h"

namespace slimpi::comm {

Status wait_for_event(const device::DeviceStream& on, std::uint64_t event, PointToPoint* exchange) {
  return wait_until(Waiter::Poll::device, exchange,
                    [&](bool* done) { return on.device.query(on.stream, event, done); });
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
  const auto begin = Trace::Clock::now();
  SLIMPI_TRY(on.device.copy(to, from, bytes, on.stream));
  // `from` and `to` may be used again when this returns.
  SLIMPI_TRY(synchronize(on, exchange));
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(name, begin, Trace::Clock::now(), bytes);
  return Status::ok;
}

}  // namespace slimpi::comm
