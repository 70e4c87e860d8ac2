// SPDX-License-Identifier: BSD-3-Clause
// The streams of one call. On a staged device, copies out of it and copies into it have streams of
// their own beside the call's, so that both overlap its work and each other. On others every
// function does nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/trace.h"
#include "comm/call.h"
#include "comm/stream_role.h"

namespace slimpi::inter {

class CopyStreams {
 public:
  // A point in the order of a lane, to be waited for.
  struct Event {
    comm::StreamRole role = comm::StreamRole::compute;
    std::uint64_t number = 0;
    Trace::Clock::time_point queued{};  // when its work was
    std::uint64_t bytes = 0;
  };

  explicit CopyStreams(comm::Call& call) : call_(call) {}

  // Communicator::prepare has opened the streams.
  Status open();

  // A copy behind what the call's stream has made so far, such as from there to staging memory. The
  // mark is reached when it is done.
  Status copy_out(void* to, const void* from, std::size_t bytes, Event* event);

  // A copy, such as from staging memory, behind which comes what is queued on the call's stream
  // from now on; what the stream has queued before may still read other memory than `to`.
  Status copy_in(void* to, const void* from, std::size_t bytes);

  // A mark behind all that the call's stream has queued.
  Status record(Event* event, std::uint64_t bytes);

  // Waits for a mark, while MPI makes progress.
  Status wait(const Event& event);

  // Waits for all that has been queued on the call's stream and on what it waits for.
  Status finish();

 private:
  Status record_on(comm::StreamRole role, Trace::Clock::time_point queued, std::uint64_t bytes,
                   Event* event);
  device::Stream* stream(comm::StreamRole role) const { return streams_[int(role)]; }
  void trace_event(const Event& event);
  Status trace_finished_copies();

  comm::Call& call_;
  device::Stream* streams_[3] = {};
  // For the trace only: copies in that nobody waits for, and until when each lane was shown.
  std::deque<Event> pending_copies_;
  Trace::Clock::time_point traced_until_[3] = {};
};

}  // namespace slimpi::inter
