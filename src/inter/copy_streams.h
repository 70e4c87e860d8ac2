// SPDX-License-Identifier: BSD-3-Clause
// The streams of one call. On a staged device, copies to host memory (d2h) and from host memory
// (h2d) have streams of their own beside the call's compute stream, so that both overlap its
// kernels and each other. On other devices every function does nothing. The communicator owns the
// streams.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>

#include "inter/context.h"
#include "observe/trace.h"

namespace slimpi::inter {

class CopyStreams {
 public:
  // An event of one stream: complete when all that was queued on that stream before it is complete.
  struct Event {
    comm::StreamRole role = comm::StreamRole::compute;
    std::uint64_t number = 0;
    Trace::Clock::time_point queued{};  // when its work was queued
    std::uint64_t bytes = 0;
  };

  explicit CopyStreams(const Context& context)
      : context_(context), pending_copies_(context.memory) {}

  // Queues a copy to, for example, staging memory, after all that is queued on the compute stream
  // so far. The event is complete when the copy is.
  Status copy_out(void* to, const void* from, std::size_t bytes, Event* event);

  // Queues a copy from, for example, staging memory. All that is queued on the compute stream from
  // now on waits for it. The copy does not wait for work that the compute stream already has; that
  // work must not use `to`.
  Status copy_in(void* to, const void* from, std::size_t bytes);

  // Records an event after all that is queued on the compute stream.
  Status record(Event* event, std::uint64_t bytes);

  // Waits for an event while MPI makes progress.
  Status wait(const Event& event);

  // Waits for all that is queued on the compute stream and for the copies that it waits for.
  Status finish();

 private:
  Status record_for_host(comm::StreamRole role, Trace::Clock::time_point queued,
                         std::uint64_t bytes, Event* event);
  device::Stream* stream(comm::StreamRole role) const {
    return context_.streams.by_role[int(role)];
  }
  void trace_event(const Event& event);
  Status trace_finished_copies();

  const Context& context_;
  // For the trace only: h2d copies that nothing waits for on the host, and the time up to which
  // each stream was traced, by role.
  std::pmr::deque<Event> pending_copies_;
  Trace::Clock::time_point traced_until_[3] = {};
};

}  // namespace slimpi::inter
