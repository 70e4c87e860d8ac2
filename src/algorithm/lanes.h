// SPDX-License-Identifier: BSD-3-Clause
// The streams of one call. On a staged device, copies out of it and copies into it have streams of
// their own beside the call's, so that both overlap its work and each other. On others every
// function does nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>

#include "algorithm/algorithm.h"
#include "base/trace.h"

namespace slimpi::algorithm {

enum class Lane { work, out, in };

class Lanes {
 public:
  // A point in the order of a lane, to be waited for.
  struct Mark {
    Lane lane = Lane::work;
    std::uint64_t number = 0;
    Trace::Clock::time_point queued{};  // when its work was
    std::uint64_t bytes = 0;
  };

  explicit Lanes(Call& call) : call_(call) {}

  // Communicator::prepare has opened the streams.
  Status open();

  // A copy behind what the call's stream has made so far, such as from there to staging memory. The
  // mark is reached when it is done.
  Status copy_out(void* to, const void* from, std::size_t bytes, Mark* mark);

  // A copy, such as from staging memory, behind which comes what is queued on the call's stream
  // from now on; what the stream has queued before may still read other memory than `to`.
  Status copy_in(void* to, const void* from, std::size_t bytes);

  // A mark behind all that the call's stream has queued.
  Status mark(Mark* mark, std::uint64_t bytes);

  // Waits for a mark, while MPI makes progress.
  Status wait(const Mark& mark);

  // Waits for all that has been queued on the call's stream and on what it waits for.
  Status finish();

 private:
  Status mark_lane(Lane lane, Trace::Clock::time_point queued, std::uint64_t bytes, Mark* mark);
  device::Stream* stream(Lane lane) const { return streams_[int(lane)]; }
  void show(const Mark& mark);
  Status look_for_arrivals();

  Call& call_;
  device::Stream* streams_[3] = {};
  // For the trace only: copies in that nobody waits for, and until when each lane was shown.
  std::deque<Mark> arriving_;
  Trace::Clock::time_point shown_[3] = {};
};

}  // namespace slimpi::algorithm
