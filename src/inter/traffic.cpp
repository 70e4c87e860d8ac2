// SPDX-License-Identifier: BSD-3-Clause
// What the schedules between nodes send: counted from the division of a shard into chunks and
// segments, without any time.
#include "inter/cost_model.h"

#include <algorithm>

#include "comm/node_layout.h"
#include "inter/bruck_steps.h"
#include "inter/segment_length.h"

namespace slimpi::cost {

namespace {

// The same on all ranks, as for a staged device.
inter::Segments segments_of(inter::ExchangeSize size) {
  size.count = std::max<std::uint64_t>(size.count, 1);
  size.staged = true;
  return inter::segments_for(size);
}

// How a shard is divided. Chunks are whole buckets, so with many ranks some own none.
struct Division {
  explicit Division(const inter::ExchangeSize& size)
      : group_size(size.group_size), segments(segments_of(size)) {
    const comm::Range first = comm::chunk_of(size.count, size.group_size, 0, segments.align);
    elements = std::max<std::uint64_t>(first.count, 1);
    owners =
        std::clamp(double((size.count + segments.align - 1) / segments.align), 1.0, group_size);
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
Traffic pairwise_traffic(const inter::ExchangeSize& size) {
  const Division division(size);
  // Of a rank that owns a chunk, the busiest one.
  const double chunks = division.owners - 1 + division.group_size - 1;
  return {2, chunks * double(division.segments.longest),
          chunks * chunk_bytes(size.format, division.elements, division.segments.elements),
          division.owners, double(division.elements) * sizeof(float)};
}

// Blocks for one owner gather on the ranks that forward them, so a rank may hold more than its
// share.
Traffic bruck_traffic(const inter::ExchangeSize& size) {
  const Division division(size);
  const int steps = inter::BruckSteps(size.group_size).steps();
  double blocks = division.owners;  // of the all-gather, in all its steps
  for (int step = 0; step < steps; ++step)
    blocks += std::min(division.group_size / 2, division.owners / 2 + (1 << step));
  // Counted as one message for each step and phase, however many blocks are in it.
  return {2.0 * steps, 2.0 * steps,
          blocks * double(inter::message_bytes(size.format, division.elements)), division.owners,
          double(division.elements) * sizeof(float)};
}

double pairwise_bytes(const inter::ExchangeSize& size) {
  const Division division(size);
  double bytes = 0;
  for (int owner = 0; owner < int(division.owners); ++owner) {
    const std::uint64_t elements =
        comm::chunk_of(size.count, size.group_size, owner, division.segments.align).count;
    bytes += 2 * (division.group_size - 1) *
             chunk_bytes(size.format, elements, division.segments.elements);
  }
  return bytes;
}

}  // namespace slimpi::cost
