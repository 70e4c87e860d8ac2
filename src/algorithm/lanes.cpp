// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/lanes.h"

#include <algorithm>
#include <new>

#include "algorithm/communicator.h"
#include "algorithm/waiter.h"

namespace slimpi::algorithm {

Status Lanes::open() {
  streams_[int(Lane::work)] = call_.stream;
  if (!call_.device.staged) return Status::ok;
  for (const Lane lane : {Lane::out, Lane::in})
    SLIMPI_TRY(call_.communicator.stream_for(call_.device, call_.out, &streams_[int(lane)], lane));
  return Status::ok;
}

Status Lanes::mark_lane(Lane lane, Trace::Clock::time_point queued, std::uint64_t bytes,
                        Mark* mark) {
  *mark = {lane, 0, queued, bytes};
  return call_.device.mark(stream(lane), &mark->number);
}

Status Lanes::copy_out(void* to, const void* from, std::size_t bytes, Mark* mark) {
  if (!call_.device.staged) return Status::ok;
  const auto now = Trace::Clock::now();
  Mark made;
  SLIMPI_TRY(mark_lane(Lane::work, now, bytes, &made));
  SLIMPI_TRY(call_.device.wait_for(stream(Lane::out), stream(Lane::work), made.number));
  SLIMPI_TRY(call_.device.copy(to, from, bytes, stream(Lane::out)));
  return mark_lane(Lane::out, now, bytes, mark);
}

Status Lanes::copy_in(void* to, const void* from, std::size_t bytes) {
  if (!call_.device.staged) return Status::ok;
  const auto now = Trace::Clock::now();
  SLIMPI_TRY(call_.device.copy(to, from, bytes, stream(Lane::in)));
  Mark there;
  SLIMPI_TRY(mark_lane(Lane::in, now, bytes, &there));
  if (Trace::running() != nullptr) try {
      arriving_.push_back(there);
    } catch (const std::bad_alloc&) {
      // No slice for this copy.
    }
  return call_.device.wait_for(stream(Lane::work), stream(Lane::in), there.number);
}

Status Lanes::mark(Mark* mark, std::uint64_t bytes) {
  if (!call_.device.staged) return Status::ok;
  return mark_lane(Lane::work, Trace::Clock::now(), bytes, mark);
}

Status Lanes::wait(const Mark& mark) {
  if (!call_.device.staged) return Status::ok;
  Waiter waiter(Waiter::Poll::device, &call_.communicator.exchange());
  for (bool done = false;;) {
    SLIMPI_TRY(call_.device.poll(stream(mark.lane), mark.number, &done));
    if (done) break;
    SLIMPI_TRY(waiter.pause());
  }
  show(mark);
  return look_for_arrivals();
}

// A lane does one thing at a time, so a slice begins where the one before it ended.
void Lanes::show(const Mark& mark) {
  Trace* const trace = Trace::running();
  if (trace == nullptr) return;
  static constexpr struct {
    const char* name;
    std::uint32_t row;
  } kRows[] = {{"device work", Trace::kDevice},
               {"copy out", Trace::kCopiesOut},
               {"copy in", Trace::kCopiesIn}};
  const auto [name, row] = kRows[int(mark.lane)];
  const auto now = Trace::Clock::now();
  trace->add(name, std::max(mark.queued, shown_[int(mark.lane)]), now, mark.bytes, row);
  shown_[int(mark.lane)] = now;
}

Status Lanes::look_for_arrivals() {
  for (bool done = true; !arriving_.empty(); arriving_.pop_front()) {
    SLIMPI_TRY(call_.device.poll(stream(Lane::in), arriving_.front().number, &done));
    if (!done) break;
    show(arriving_.front());
  }
  return Status::ok;
}

Status Lanes::finish() {
  Mark last;
  SLIMPI_TRY(mark(&last, 0));
  return wait(last);
}

}  // namespace slimpi::algorithm
