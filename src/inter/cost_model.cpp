// SPDX-License-Identifier: BSD-3-Clause
#include "inter/cost_model.h"

#include <algorithm>

#include "comm/node_layout.h"
#include "inter/bruck.h"

namespace slimpi::cost {

namespace {

// Divides a shard as for a GPU, whatever the device, so that all ranks get the same division.
inter::Segments segments_of(inter::ExchangeSize size) {
  size.count = std::max<std::uint64_t>(size.count, 1);
  size.staged = true;
  return inter::segments_for(size);
}

// The division of a shard. Chunks are whole buckets, so with many ranks some of them own no chunk.
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

// Returns the bytes of all messages in which one rank sends a chunk of `elements` elements to
// another, in segments of `segment` elements.
double chunk_bytes(const kernels::Format& format, std::uint64_t elements, std::uint64_t segment) {
  const std::uint64_t whole = elements / segment, rest = elements % segment;
  return double(whole) * double(inter::message_bytes(format, segment)) +
         (rest == 0 ? 0 : double(inter::message_bytes(format, rest)));
}

}  // namespace

// In the reduce-scatter an owner sends a chunk to each other owner, and in the all-gather its own
// chunk to all other ranks.
Traffic pairwise_traffic(const inter::ExchangeSize& size) {
  const Division division(size);
  // A rank that owns a chunk is the busiest, because it sends chunks in both phases.
  const double chunks = division.owners - 1 + division.group_size - 1;
  return {2, chunks * double(division.segments.per_longest_chunk),
          chunks * chunk_bytes(size.format, division.elements, division.segments.elements),
          division.owners, double(division.elements) * sizeof(float)};
}

// A rank that forwards blocks may hold the blocks of several ranks for one owner, so it may send
// more than an equal share of all blocks.
Traffic bruck_traffic(const inter::ExchangeSize& size) {
  const Division division(size);
  const int steps = inter::BruckSteps(size.group_size).steps();
  double blocks = division.owners;  // blocks that a rank sends in all steps of the all-gather
  for (int step = 0; step < steps; ++step)
    blocks += std::min(division.group_size / 2, division.owners / 2 + (1 << step));
  // Counts one message per step and phase, however many blocks it has.
  return {2.0 * steps, 2.0 * steps,
          blocks * double(inter::message_bytes(size.format, division.elements)), division.owners,
          double(division.elements) * sizeof(float)};
}

// Models the rank with the busiest link, which owns a chunk. Its codec, its copies and the link
// work on different segments at the same time, so only the codec's work on the first and the last
// segment overlaps with nothing.
void add_pairwise(Cost& cost, const inter::ExchangeSize& size, double flows, double sharing,
                  const Constants& c) {
  if (size.group_size < 2) return;
  const double nodes = size.group_size;
  const Traffic sent = pairwise_traffic(size);
  const inter::Segments segments = inter::segments_for(size);
  // A rank encodes its values for each other owner, of which there are `to_owners`, averaged over
  // all ranks. An owner also encodes its sum, and decodes a message of each other rank and the sum
  // of each other owner.
  const double others = nodes - 1, to_owners = sent.owners * others / nodes;
  const double codec =
      (c.encode * (to_owners + 1) + c.decode * (sent.owners - 1 + others)) * sent.chunk;
  const double link = flows * sent.bytes * c.link;
  const double processor = (codec + 2 * sent.bytes * c.copy + sent.messages * c.overhead) * sharing;
  const double segment = std::min(sent.chunk, double(segments.elements) * sizeof(float));
  const double fill = 2 * (c.encode + c.decode) * segment * sharing;
  cost.messages += sent.messages;
  cost.link += link;
  cost.processor += processor;
  cost.waiting += sent.waits * c.latency;
  cost.peers = others;
  cost.memory += double(segments.total);
  // A pipeline takes the time of its slowest stage, and the time to fill and empty it.
  cost.seconds += sent.waits * c.latency + std::max(link, processor);
  cost.seconds += std::min({fill, link, processor});
}

// Adds all times, because nothing overlaps: each step waits for the step before.
void add_bruck(Cost& cost, const inter::ExchangeSize& size, double sharing, const Constants& c) {
  if (size.group_size < 2) return;
  const double nodes = size.group_size;
  const Traffic sent = bruck_traffic(size);
  const double codec =
      (c.encode * (sent.owners + 1) + c.decode * (nodes + sent.owners - 1)) * sent.chunk;
  const double link = sent.bytes * c.link;
  // The four copies are MPI's on both sides, and the packing and unpacking of blocks.
  const double processor = (codec + 4 * sent.bytes * c.copy + sent.messages * c.overhead) * sharing;
  cost.messages += sent.messages;
  cost.link += link;
  cost.processor += processor;
  cost.waiting += sent.waits * c.latency;
  cost.peers = std::min(sent.messages, nodes - 1);
  cost.seconds += sent.waits * c.latency + link + processor;
}

}  // namespace slimpi::cost
