// SPDX-License-Identifier: BSD-3-Clause
// How fast a communicator's messages between nodes leave, and how long they should be for that. A
// message costs the CPU about as much whatever its length, so on a fast network the lengths of
// SegmentClass::large cost more than the link.
#pragma once
#include <cstdint>

#include "comm/call.h"
#include "comm/point_to_point.h"

namespace slimpi::algorithm {

class MessageRate {
 public:
  // Counts a call. Whether the ranks are to agree before it: at the 4th, the 8th, the 16th, ...
  bool due() { return ++calls_ >= 4 && (calls_ & (calls_ - 1)) == 0; }

  // This rank sent so many bytes in a call. A call may be slow for many reasons, so the fastest one
  // since the ranks have last agreed counts.
  void sent(std::uint64_t bytes, std::uint64_t nanoseconds);

  // Bytes a second; kUnknown where this rank has sent nothing.
  std::uint64_t fastest() const { return fastest_ == 0 ? kUnknown : fastest_; }

  // `slowest`: the least fastest() of all ranks; `staged`: some rank's device is. Between the two
  // limits all stays as it is.
  comm::SegmentClass choose(std::uint64_t slowest, bool staged, comm::SegmentClass now);

  // From here on messages are longer, and shorter again below half of it: at 20 Gbit/s a message of
  // 64 KiB takes 26 us. Slower networks gain nothing, and there long messages delay each other.
  static constexpr std::uint64_t kFast = 2'500'000'000;
  static constexpr std::uint64_t kUnknown = INT64_MAX;  // more than any

 private:
  std::uint64_t calls_ = 0, fastest_ = 0;
};

// prepare() calls it first, at every call. From time to time all ranks agree on the length of
// messages.
// *changed: they are others from this call on. The same on all ranks.
Status agree_on_messages(const comm::Call& call, bool* changed);

// The call has ended well.
void note_rate(const comm::Call& call, std::uint64_t nanoseconds, std::uint64_t sent);

}  // namespace slimpi::algorithm
