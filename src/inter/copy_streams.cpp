// SPDX-License-Identifier: BSD-3-Clause
#include "inter/copy_streams.h"

#include <algorithm>
#include <new>

#include "comm/stream_wait.h"

namespace slimpi::inter {

Status CopyStreams::record_for_host(comm::StreamRole role, Trace::Clock::time_point queued,
                                    std::uint64_t bytes, Event* event) {
  *event = {role, 0, queued, bytes};
  return context_.device.record(stream(role), &event->number);
}

Status CopyStreams::copy_out(void* to, const void* from, std::size_t bytes, Event* event) {
  if (!context_.device.staged) return Status::ok;
  const auto now = Trace::Clock::now();
  // The copy starts behind the kernels that are queued so far. The host waits for neither.
  SLIMPI_TRY(comm::hold_up(context_.device, stream(comm::StreamRole::d2h),
                           stream(comm::StreamRole::compute)));
  SLIMPI_TRY(context_.device.copy(to, from, bytes, stream(comm::StreamRole::d2h)));
  return record_for_host(comm::StreamRole::d2h, now, bytes, event);
}

Status CopyStreams::copy_in(void* to, const void* from, std::size_t bytes) {
  if (!context_.device.staged) return Status::ok;
  const auto now = Trace::Clock::now();
  // Behind no kernel: the caller says that `to` is free (see SegmentRing::finish).
  SLIMPI_TRY(context_.device.copy(to, from, bytes, stream(comm::StreamRole::h2d)));
  Event there{comm::StreamRole::h2d, 0, now, bytes};
  SLIMPI_TRY(comm::hold_up(context_.device, stream(comm::StreamRole::compute),
                           stream(comm::StreamRole::h2d), &there.number));
  if (Trace::running() != nullptr) try {
      // Nobody waits for these events. wait() looks at them later, for their place in the trace.
      pending_copies_.push_back(there);
    } catch (const std::bad_alloc&) {
      // The trace does not show this copy.
    }
  return Status::ok;
}

Status CopyStreams::record(Event* event, std::uint64_t bytes) {
  if (!context_.device.staged) return Status::ok;
  return record_for_host(comm::StreamRole::compute, Trace::Clock::now(), bytes, event);
}

Status CopyStreams::wait(const Event& event) {
  if (!context_.device.staged) return Status::ok;
  SLIMPI_TRY(comm::wait_for_event({context_.device, stream(event.role)}, event.number,
                                  &context_.exchange));
  trace_event(event);
  return trace_finished_copies();
}

// A stream does one thing at a time, so an interval in the trace begins where the one before it
// ended.
void CopyStreams::trace_event(const Event& event) {
  Trace* const trace = Trace::running();
  if (trace == nullptr) return;
  static constexpr struct {
    const char* name;
    std::uint32_t row;
  } kRows[] = {{"device work", Trace::kDevice},
               {"copy out", Trace::kCopiesOut},
               {"copy in", Trace::kCopiesIn}};
  const auto [name, row] = kRows[int(event.role)];
  const auto now = Trace::Clock::now();
  trace->add(name, std::max(event.queued, traced_until_[int(event.role)]), now, event.bytes, row);
  traced_until_[int(event.role)] = now;
}

Status CopyStreams::trace_finished_copies() {
  for (bool done = true; !pending_copies_.empty(); pending_copies_.pop_front()) {
    SLIMPI_TRY(context_.device.query(stream(comm::StreamRole::h2d), pending_copies_.front().number,
                                     &done));
    // Copies on one stream end in their order.
    if (!done) break;
    trace_event(pending_copies_.front());
  }
  return Status::ok;
}

// Kernels wait for the copies to the device, and each copy out was waited for before its message
// was sent. So the last kernel is the last work of all three streams.
Status CopyStreams::finish() {
  Event last;
  SLIMPI_TRY(record(&last, 0));
  return wait(last);
}

}  // namespace slimpi::inter
