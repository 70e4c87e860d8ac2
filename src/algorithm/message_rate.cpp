// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/message_rate.h"

#include <algorithm>

#include "base/log.h"
#include "comm/communicator.h"

namespace slimpi::algorithm {

namespace {

// Shorter sums have no longer messages, or too few to tell a rate.
constexpr std::uint64_t kLongSum = 4 << 20;

// A rank for which another one of its node sends has sent less: a word or two.
constexpr std::uint64_t kLeast = 4 << 10;

struct Rate : comm::Attachment, MessageRate {};

}  // namespace

void MessageRate::sent(std::uint64_t bytes, std::uint64_t nanoseconds) {
  const double rate = double(bytes) * 1e9 / double(std::max<std::uint64_t>(nanoseconds, 1));
  fastest_ = std::max(fastest_, std::uint64_t(rate));
}

comm::SegmentClass MessageRate::choose(std::uint64_t slowest, bool staged, comm::SegmentClass now) {
  using comm::SegmentClass;
  fastest_ = 0;
  if (now == SegmentClass::small) return staged ? SegmentClass::large : now;
  if (slowest == kUnknown) return now;
  if (slowest >= kFast) return SegmentClass::longest;
  return slowest < kFast / 2 ? SegmentClass::large : now;
}

Status agree_on_messages(const comm::Call& call, bool* changed) {
  comm::Communicator& communicator = call.communicator;
  Rate& rate = communicator.attachment<Rate>();
  *changed = false;
  // With SLIMPI_BUFFERS=host, the same on all ranks, no call that is taken has a staged device.
  if (!rate.due() || communicator.config().buffers == Buffers::host) return Status::ok;
  const comm::SegmentClass now = communicator.segment_class();
  // The third word only gives the agreement another length than those beside it have in a trace.
  std::uint64_t least[] = {rate.fastest(), call.device.staged ? 0u : 1u, std::uint64_t(now)};
  SLIMPI_TRY(communicator.exchange().all_min(least));
  const comm::SegmentClass wanted = rate.choose(least[0], least[1] == 0, now);
  *changed = wanted != now;
  if (!*changed) return Status::ok;
  communicator.use_segments(wanted);
  if (communicator.rank() == 0 && now != comm::SegmentClass::small)
    log_info(wanted == comm::SegmentClass::longest
                 ? "the network is fast: messages of long sums are longer from now on"
                 : "the network is slower: messages of long sums are shorter from now on");
  return Status::ok;
}

void note_rate(const comm::Call& call, std::uint64_t nanoseconds, std::uint64_t sent) {
  if (call.count * sizeof(float) >= kLongSum && sent >= kLeast)
    call.communicator.attachment<Rate>().sent(sent, nanoseconds);
}

}  // namespace slimpi::algorithm
