// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/prepared.h"

#include <map>
#include <tuple>

#include "base/log.h"
#include "comm/communicator.h"

namespace slimpi::algorithm {

namespace {

struct Prepared : comm::Attachment {
  void options_changed() override { largest.clear(); }

  // The largest count for which all ranks were ready, by algorithm, bits, bucket, hierarchy and
  // hook. The same on all ranks: it decides whether prepare() communicates.
  std::map<std::tuple<const Algorithm*, int, std::uint32_t, Hierarchy, std::string>, std::uint64_t>
      largest;
};

}  // namespace

Status prepare(comm::Communicator& communicator, const comm::Plan& plan, std::uint64_t count,
               const device::Location& location, bool* ready) {
  Prepared& prepared = communicator.attachment<Prepared>();
  std::uint64_t& largest = prepared.largest[{plan.algorithm, plan.format.bits, plan.format.bucket,
                                             plan.hierarchy, plan.hook}];
  const bool staged = location.device->staged;
  Status status = plan.algorithm->reserve(communicator, plan, count, location);
  device::Stream* stream = nullptr;
  using comm::StreamRole;
  for (const StreamRole role : {StreamRole::compute, StreamRole::d2h, StreamRole::h2d})
    if (status == Status::ok && (role == StreamRole::compute || staged))
      status = communicator.stream_for(location, &stream, role);
  *ready = status == Status::ok;
  if (count <= largest) return status;
  if (!*ready)
    log_once(LogLevel::warn, "calls of this size go to MPI on all ranks: " + failure_text());
  std::uint64_t everyone[] = {*ready ? 1u : 0u, staged ? 0u : 1u};
  SLIMPI_TRY(communicator.exchange().all_min(everyone));
  *ready = everyone[0] == 1;
  if (everyone[1] == 0 && communicator.segment_class() == comm::SegmentClass::small) {
    // Longer messages need more memory: every size is prepared again, this one at once.
    communicator.use_large_segments();
    prepared.largest.clear();
    return *ready ? prepare(communicator, plan, count, location, ready) : Status::ok;
  }
  if (*ready) largest = count;
  return Status::ok;
}

}  // namespace slimpi::algorithm
