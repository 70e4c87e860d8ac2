// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/schedule.h"

#include <algorithm>

#include "algorithm/communicator.h"
#include "algorithm/relay.h"
#include "algorithm/relayed_rounds.h"
#include "algorithm/segments.h"
#include "algorithm/two_rounds.h"
#include "base/log.h"

namespace slimpi::algorithm {

namespace {

// What decides is how a message compares with the bytes that could travel instead; these are of TCP
// at 10 Gbit/s, and faster networks are faster in all three.
constexpr double kLatency = 24e-6;  // of a step that waits for the one before
constexpr double kMessage = 3e-6;   // of a rank's processor, each way
constexpr double kByte = 0.8e-9;    // of a rank's link

// How a slice is divided: chunks are whole buckets, so with many members some own none.
struct Division {
  Division(const kernels::Format& format, std::uint64_t count, int members_, Grain grain)
      : members(members_), segments(segments_for(format, count, members_, grain, true)) {
    const Range first = part_of(count, members_, 0, segments.align);
    message = double(message_bytes(format, std::max<std::uint64_t>(first.count, 1)));
    owners = std::min(members, double((count + segments.align - 1) / segments.align));
  }
  double members, owners = 1, message = 0;
  Segments segments;
};

double direct_cost(const kernels::Format& format, std::uint64_t count, int members, Grain grain) {
  const Division division(format, count, members, grain);
  const double chunks = division.owners - 1 + division.members - 1;  // that an owner sends
  return 2 * kLatency + chunks * double(division.segments.longest) * kMessage +
         chunks * division.message * kByte;
}

Need direct_need(const kernels::Format& format, std::uint64_t count, int members, Grain grain,
                 bool staged) {
  const Segments segments = segments_for(format, count, members, grain, staged);
  return {segments.total, segments.elements};
}

// What is for one owner meets on its way there, so a member may hold more than its share.
double relayed_cost(const kernels::Format& format, std::uint64_t count, int members, Grain grain) {
  const Division division(format, count, members, grain);
  const int steps = Relay(members).steps();
  double blocks = division.owners;  // of the second round, in all its steps
  for (int step = 0; step < steps; ++step)
    blocks += std::min(division.members / 2, division.owners / 2 + (1 << step));
  return 2 * steps * (kLatency + kMessage) + blocks * division.message * kByte;
}

constexpr Schedule kSchedules[] = {
    {"direct", direct_cost, direct_need, run_rounds},
    {"relayed", relayed_cost, relayed_need, run_relayed},
};

}  // namespace

std::span<const Schedule> schedules() {
  return kSchedules;
}

const Schedule& schedule_for(const kernels::Format& format, std::uint64_t count, int members,
                             Grain grain) {
  const std::size_t encoded = kernels::encoded_bytes(format, count);
  const Schedule* best = nullptr;
  double least = 0;
  for (const Schedule& schedule : kSchedules) {
    double cost = schedule.cost(format, count, members, grain);
    // Memory beyond half as much again as the encoded slice and what is always allowed loses to any
    // time.
    const std::size_t bytes = schedule.need(format, count, members, grain, true).bytes;
    if (bytes > encoded + encoded / 2 + kMemoryFloor) cost += double(bytes);
    if (best == nullptr || cost < least) {
      best = &schedule;
      least = cost;
    }
  }
  return *best;
}

Status run_exchange(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                    float* residual) {
  const Schedule& schedule = schedule_for(call.plan.format, slice.count, int(rails.peers.size()),
                                          call.communicator.grain());
  if (call.communicator.rank() == 0 && log_enabled(LogLevel::debug))
    log_once(LogLevel::debug,
             std::string("messages between nodes go the ") + schedule.name + " way");
  return schedule.run(call, rails, slice, in, out, residual);
}

Need exchange_need(const kernels::Format& format, std::uint64_t count, int members, Grain grain,
                   bool staged) {
  return schedule_for(format, count, members, grain).need(format, count, members, grain, staged);
}

}  // namespace slimpi::algorithm
