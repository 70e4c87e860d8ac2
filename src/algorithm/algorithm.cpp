// SPDX-License-Identifier: BSD-3-Clause
// Makes the table of algorithms from src/options/algorithms.def. prepare() reserves the memory and
// opens the streams that a call needs before its first message, and decides whether messages are
// small or large (Communicator::use_segments).
#include "algorithm/algorithm.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "comm/communicator.h"
#include "observe/log.h"

namespace slimpi::algorithm {

namespace {
constexpr Algorithm kTable[] = {
#define SLIMPI_ALGORITHM(word, after, does, ...) \
  {.id = AlgorithmId::word,                      \
   .name = #word,                                \
   .argument = after,                            \
   .functions = &functions::does,                \
   __VA_ARGS__},
#include "options/algorithms.def"
};
}  // namespace

const Algorithm* find(std::string_view value) {
  const std::string_view name = value.substr(0, value.find(':'));
  for (const Algorithm& row : kTable)
    if (name == row.name) return &row;
  return nullptr;
}

std::span<const Algorithm> all() {
  return kTable;
}

namespace {

struct Prepared : comm::Attachment {
  void options_changed() override { largest.clear(); }

  // The largest count that all ranks were ready for, by algorithm, bits, bucket, hierarchy, hook
  // and collective. These counts must be the same on all ranks, because they decide whether
  // prepare() communicates.
  std::map<
      std::tuple<const Algorithm*, int, std::uint32_t, Hierarchy, const std::string*, Collective>,
      std::uint64_t>
      largest;
  std::uint64_t calls = 0;
};

// Reserves memory and opens streams for a call. If `ask` is true, or the count is larger than any
// before, the ranks agree whether all of them are ready, and *ready becomes the common answer.
Status reserve(const comm::Call& call, Prepared& prepared, bool ask, bool* ready) {
  comm::Communicator& communicator = call.communicator;
  const comm::Plan& plan = call.plan;
  std::uint64_t& largest = prepared.largest[{plan.algorithm, plan.format.bits, plan.format.bucket,
                                             plan.hierarchy, plan.hook, call.collective()}];
  const bool staged = call.device.staged;
  Status status = plan.algorithm->reserve(call);
  device::Stream* stream = nullptr;
  using comm::StreamRole;
  for (const StreamRole role : {StreamRole::compute, StreamRole::d2h, StreamRole::h2d})
    if (status == Status::ok && (role == StreamRole::compute || staged))
      status = communicator.stream_for(call.location, &stream, role);
  *ready = status == Status::ok;
  if (!ask && call.count <= largest) return status;
  if (!*ready) log_failure_once(LogLevel::warn, "calls of this size go to MPI on all ranks");
  std::uint64_t everyone[] = {*ready ? 1u : 0u, staged ? 0u : 1u};
  SLIMPI_TRY(communicator.exchange().all_min(everyone));
  *ready = everyone[0] == 1;
  if (everyone[1] == 0 && communicator.segment_class() == comm::SegmentClass::small) {
    // Longer messages need more memory, so every size is prepared again: this one now, and any
    // other at its next call.
    communicator.use_segments(comm::SegmentClass::large);
    prepared.largest.clear();
    return *ready ? reserve(call, prepared, true, ready) : Status::ok;
  }
  if (*ready) largest = std::max(largest, call.count);
  return Status::ok;
}

}  // namespace

Status prepare(const comm::Call& call, bool* ready) {
  Prepared& prepared = call.communicator.attachment<Prepared>();
  comm::Communicator& communicator = call.communicator;
  // The ranks ask each other about GPUs whenever the count is larger than before. A later, smaller
  // call may still come with buffers on a GPU, so they also ask in calls 4, 8, 16, ...
  const std::uint64_t number = ++prepared.calls;
  const bool ask = number >= 4 && std::has_single_bit(number) &&
                   communicator.config().buffers != Buffers::host &&
                   communicator.segment_class() == comm::SegmentClass::small;
  return reserve(call, prepared, ask, ready);
}

}  // namespace slimpi::algorithm
