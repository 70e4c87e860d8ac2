// SPDX-License-Identifier: BSD-3-Clause
#include "inter/schedule.h"

#include <algorithm>

#include "base/log.h"
#include "comm/communicator.h"
#include "inter/bruck.h"
#include "inter/bruck_steps.h"
#include "inter/pipeline_plan.h"
#include "inter/reduce_scatter_allgather.h"

namespace slimpi::inter {

namespace {

// The choice depends on the cost of a message relative to the bytes that could be sent instead.
// These seconds are for TCP at 10 Gbit/s; a faster network is faster in all three.
constexpr double kLatency = 24e-6;  // of a step that waits for the one before
constexpr double kMessage = 3e-6;   // of a rank's processor, for a send or a receive
constexpr double kByte = 0.8e-9;    // of a rank's link

// How a shard is divided. Chunks are whole buckets, so with many members some own none.
struct Division {
  Division(const kernels::Format& format, std::uint64_t count, int group_size_,
           comm::SegmentClass segment_class)
      : group_size(group_size_),
        segments(segments_for(format, count, group_size_, segment_class, true)) {
    const comm::Range first = comm::chunk_of(count, group_size_, 0, segments.align);
    message = double(message_bytes(format, std::max<std::uint64_t>(first.count, 1)));
    owners = std::min(group_size, double((count + segments.align - 1) / segments.align));
  }
  double group_size, owners = 1, message = 0;
  Segments segments;
};

double pairwise_cost(const kernels::Format& format, std::uint64_t count, int group_size,
                     comm::SegmentClass segment_class) {
  const Division division(format, count, group_size, segment_class);
  const double chunks = division.owners - 1 + division.group_size - 1;  // that an owner sends
  return 2 * kLatency + chunks * double(division.segments.longest) * kMessage +
         chunks * division.message * kByte;
}

Need pairwise_need(const kernels::Format& format, std::uint64_t count, int group_size,
                   comm::SegmentClass segment_class, bool staged) {
  const Segments segments = segments_for(format, count, group_size, segment_class, staged);
  return {segments.total, segments.elements};
}

// Blocks for one owner gather on the members that forward them, so a member may hold more than its
// share.
double bruck_cost(const kernels::Format& format, std::uint64_t count, int group_size,
                  comm::SegmentClass segment_class) {
  const Division division(format, count, group_size, segment_class);
  const int steps = BruckSteps(group_size).steps();
  double blocks = division.owners;  // of the all-gather, in all its steps
  for (int step = 0; step < steps; ++step)
    blocks += std::min(division.group_size / 2, division.owners / 2 + (1 << step));
  return 2 * steps * (kLatency + kMessage) + blocks * division.message * kByte;
}

constexpr Schedule kSchedules[] = {
    {"pairwise", pairwise_cost, pairwise_need, run_reduce_scatter_allgather},
    {"bruck", bruck_cost, bruck_need, run_bruck},
};

}  // namespace

std::span<const Schedule> schedules() {
  return kSchedules;
}

const Schedule& schedule_for(const kernels::Format& format, std::uint64_t count, int group_size,
                             comm::SegmentClass segment_class) {
  const std::size_t encoded = kernels::encoded_bytes(format, count);
  const Schedule* best = nullptr;
  double least = 0;
  for (const Schedule& schedule : kSchedules) {
    double cost = schedule.cost(format, count, group_size, segment_class);
    // A schedule that needs more than 1.5 times the encoded shard plus kMemoryFloor loses, whatever
    // its time: its bytes are added to its seconds.
    const std::size_t bytes = schedule.need(format, count, group_size, segment_class, true).bytes;
    if (bytes > encoded + encoded / 2 + kMemoryFloor) cost += double(bytes);
    if (best == nullptr || cost < least) {
      best = &schedule;
      least = cost;
    }
  }
  return *best;
}

Status run_exchange(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                    const float* in, float* out, float* residual) {
  const Schedule& schedule = schedule_for(call.plan.format, shard.count, int(group.peers.size()),
                                          call.communicator.segment_class());
  if (call.communicator.rank() == 0 && log_enabled(LogLevel::debug))
    log_once(LogLevel::debug,
             std::string("messages between nodes go the ") + schedule.name + " way");
  Streams streams;
  SLIMPI_TRY(find_streams(call, &streams));
  return schedule.run(context_of(call, streams), group, shard, in, out, residual);
}

Need exchange_need(const kernels::Format& format, std::uint64_t count, int group_size,
                   comm::SegmentClass segment_class, bool staged) {
  return schedule_for(format, count, group_size, segment_class)
      .need(format, count, group_size, segment_class, staged);
}

}  // namespace slimpi::inter
