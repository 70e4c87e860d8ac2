// SPDX-License-Identifier: BSD-3-Clause
#include "comm/stream_wait.h"

#include "base/trace.h"
#include "comm/waiter.h"

namespace slimpi::comm {

Status wait_for_event(const device::Device& device, device::Stream* stream, std::uint64_t event,
                      PointToPoint* exchange) {
  return wait_until(Waiter::Poll::device, exchange,
                    [&](bool* done) { return device.query(stream, event, done); });
}

Status synchronize(const device::Device& device, device::Stream* stream, PointToPoint* exchange) {
  if (&device == &device::host()) return Status::ok;
  std::uint64_t event = 0;
  SLIMPI_TRY(device.record_for_poll(stream, &event));
  return wait_for_event(device, stream, event, exchange);
}

Status copy_and_wait(const device::Device& device, device::Stream* stream, const char* name,
                     void* to, const void* from, std::size_t bytes, PointToPoint* exchange) {
  const auto begin = Trace::Clock::now();
  SLIMPI_TRY(device.copy(to, from, bytes, stream));
  SLIMPI_TRY(synchronize(device, stream, exchange));
  if (Trace* const trace = Trace::running(); trace != nullptr)
    trace->add(name, begin, Trace::Clock::now(), bytes);
  return Status::ok;
}

}  // namespace slimpi::comm
