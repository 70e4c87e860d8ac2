// SPDX-License-Identifier: BSD-3-Clause
#include "inter/traffic.h"

#include <algorithm>

#include "comm/node_layout.h"
#include "inter/bruck_steps.h"
#include "inter/pipeline_plan.h"

namespace slimpi::cost {

namespace {

// How a shard is divided. Chunks are whole buckets, so with many ranks some own none.
struct Division {
  Division(const kernels::Format& format, std::uint64_t count, int group_size_,
           comm::SegmentClass segment_class)
      : group_size(group_size_),
        segments(inter::segments_for(format, std::max<std::uint64_t>(count, 1), group_size_,
                                     segment_class, true)) {
    const comm::Range first = comm::chunk_of(count, group_size_, 0, segments.align);
    elements = std::max<std::uint64_t>(first.count, 1);
    owners =
        std::clamp(double((count + segments.align - 1) / segments.align), 1.0, double(group_size_));
  }
  double group_size, owners = 1;
  std::uint64_t elements = 1;  // of the longest chunk
  inter::Segments segments;
};

// Bytes of the messages with which one rank sends a chunk to another.
double chunk_bytes(const kernels::Format& format, std::uint64_t elements, std::uint64_t segment) {
  const std::uint64_t whole = elements / segment, rest = elements % segment;
  return double(whole) * double(inter::message_bytes(format, segment)) +
         (rest == 0 ? 0 : double(inter::message_bytes(format, rest)));
}

}  // namespace

// An owner sends a chunk to each other owner in the reduce-scatter, and its own to all others in
// the all-gather.
Traffic pairwise_traffic(const kernels::Format& format, std::uint64_t count, int group_size,
                         comm::SegmentClass segment_class) {
  const Division division(format, count, group_size, segment_class);
  // Of a rank that owns a chunk, the busiest one.
  const double chunks = division.owners - 1 + division.group_size - 1;
  return {2, chunks * double(division.segments.longest),
          chunks * chunk_bytes(format, division.elements, division.segments.elements),
          division.owners, double(division.elements) * sizeof(float)};
}

// Blocks for one owner gather on the ranks that forward them, so a rank may hold more than its
// share.
Traffic bruck_traffic(const kernels::Format& format, std::uint64_t count, int group_size,
                      comm::SegmentClass segment_class) {
  const Division division(format, count, group_size, segment_class);
  const int steps = inter::BruckSteps(group_size).steps();
  double blocks = division.owners;  // of the all-gather, in all its steps
  for (int step = 0; step < steps; ++step)
    blocks += std::min(division.group_size / 2, division.owners / 2 + (1 << step));
  // Counted as one message for each step and phase, however many blocks are in it.
  return {2.0 * steps, 2.0 * steps,
          blocks * double(inter::message_bytes(format, division.elements)), division.owners,
          double(division.elements) * sizeof(float)};
}

double pairwise_bytes(const kernels::Format& format, std::uint64_t count, int group_size) {
  const Division division(format, count, group_size, comm::SegmentClass::small);
  double bytes = 0;
  for (int owner = 0; owner < int(division.owners); ++owner) {
    const std::uint64_t elements =
        comm::chunk_of(count, group_size, owner, division.segments.align).count;
    bytes +=
        2 * (division.group_size - 1) * chunk_bytes(format, elements, division.segments.elements);
  }
  return bytes;
}

}  // namespace slimpi::cost
