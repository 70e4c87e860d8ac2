// SPDX-License-Identifier: BSD-3-Clause
#include "inter/cost_model.h"

#include <algorithm>
#include <cmath>

#include "comm/node_layout.h"
#include "inter/bruck.h"
#include "inter/schedule.h"

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

namespace {

kernels::Format quantized(int bits) {
  kernels::Format format;
  format.codec = kernels::Codec::quantized;
  format.bits = std::uint8_t(bits);
  return format;
}

std::uint64_t floats_in(double bytes) {
  return std::max<std::uint64_t>(1, std::uint64_t(bytes / sizeof(float)));
}

// How many ranks share a core while `active` ranks of each node work.
double share(const Layout& layout, double active) {
  if (layout.cores <= 0) return 1;
  const double ranks = active * (layout.one_machine ? layout.nodes : 1);
  return std::max(1.0, ranks / layout.cores);
}

// One swap of a message of `bytes` with another rank, in which `flows` ranks of a node take part.
// MPI does not overlap it with anything, so link and processor time exclude each other.
void swap(Cost& cost, double bytes, bool between_nodes, double flows, double sharing,
          const Constants& c) {
  // The ranks of a node share its link; `bytes` are those of one rank.
  const double link = between_nodes ? flows * bytes * std::max(c.exchange, c.link) : 0;
  const double processor =
      (c.overhead + 2 * bytes * (between_nodes ? c.copy : c.node_copy)) * sharing;
  cost.messages += 1;
  cost.link += link;
  cost.processor += processor;
  cost.waiting += between_nodes ? c.latency : 0;
  cost.seconds += (between_nodes ? c.latency : 0) + std::max(link, processor);
}

void work(Cost& cost, double seconds) {
  cost.processor += seconds;
  cost.seconds += seconds;
}

// All steps cost the same: each rank sends 1/ranks of the vector to one peer and waits for another.
Cost ring(double bytes, double ranks, double nodes, double sharing, const Constants& c) {
  Cost one, cost;
  swap(one, bytes / ranks, nodes > 1, 1, sharing, c);
  const double steps = 2 * (ranks - 1);
  cost.messages = steps * one.messages;
  cost.link = steps * one.link;
  cost.processor = steps * one.processor;
  cost.waiting = steps * one.waiting;
  cost.seconds = steps * one.seconds;
  work(cost, (ranks - 1) / ranks * bytes * c.add * sharing);
  cost.peers = nodes > 1 ? std::min(2.0, nodes - 1) : 0;
  return cost;
}

// Ranks beyond a power of two hand their buffer to another rank first and get the sum at the
// end.
Cost halving(double bytes, double ranks, double per_node, double sharing, const Constants& c) {
  Cost cost;
  // The largest power of two among the ranks.
  const double power = std::exp2(std::floor(std::log2(ranks)));
  if (ranks > power) {
    swap(cost, bytes, per_node < 2, 1, sharing, c);
    swap(cost, bytes, per_node < 2, 1, sharing, c);
    work(cost, bytes * c.add * sharing);
  }
  double part = bytes / 2;
  // Each step of the halving, and the step of the doubling that undoes it, move the same bytes.
  for (double distance = power / 2; distance >= 1; distance /= 2, part /= 2) {
    const bool away = distance >= per_node;
    swap(cost, part, away, per_node, sharing, c);
    swap(cost, part, away, per_node, sharing, c);
    work(cost, part * c.add * sharing);
    cost.peers += away ? 1 : 0;
  }
  return cost;
}

// The ranks of a node sum block by block through shared memory, or get the result from there.
void within_node(Cost& cost, double bytes, double per_node, double sharing, const Constants& c) {
  if (per_node < 2) return;
  const double sum = bytes * (c.node_copy + c.add), copy = bytes * c.node_copy;
  work(cost, (sum + copy) * sharing);
}

// `flows` ranks of each node sum a shard of this size each, in reduce-scatter and all-gather. The
// link of a rank that owns a chunk is the busiest. Codec, copies and the link overlap, segment by
// segment; the first segment's codec and the last one's do not.
void pairwise_cost(Cost& cost, const inter::ExchangeSize& size, double flows, double sharing,
                   const Constants& c) {
  if (size.group_size < 2) return;
  const double nodes = size.group_size;
  const Traffic sent = pairwise_traffic(size);
  const inter::Segments segments = inter::segments_for(size);
  const double encode = c.encode[size.format.bits], decode = c.decode[size.format.bits];
  // On average a rank encodes for each other owner, and its own sum. It decodes a message of each
  // other rank, and the sum of each other owner.
  const double others = nodes - 1, to_owners = sent.owners * others / nodes;
  const double codec =
      (encode * (to_owners + 1) + decode * (sent.owners - 1 + others)) * sent.chunk;
  const double link = flows * sent.bytes * c.link;
  const double processor = (codec + 2 * sent.bytes * c.copy + sent.messages * c.overhead) * sharing;
  const double segment = std::min(sent.chunk, double(segments.elements) * sizeof(float));
  const double fill = 2 * (encode + decode) * segment * sharing;
  cost.messages += sent.messages;
  cost.link += link;
  cost.processor += processor;
  cost.waiting += sent.waits * c.latency;
  cost.peers = others;
  cost.memory += double(segments.total);
  // A pipeline takes as long as its slowest stage, and the time to fill and to empty it.
  cost.seconds += sent.waits * c.latency + std::max(link, processor);
  cost.seconds += std::min({fill, link, processor});
}

// Each step waits for the one before, so that nothing overlaps.
void bruck_cost(Cost& cost, const inter::ExchangeSize& size, double sharing, const Constants& c) {
  if (size.group_size < 2) return;
  const double nodes = size.group_size;
  const Traffic sent = bruck_traffic(size);
  const double encode = c.encode[size.format.bits], decode = c.decode[size.format.bits];
  const double codec =
      (encode * (sent.owners + 1) + decode * (nodes + sent.owners - 1)) * sent.chunk;
  const double link = sent.bytes * c.link;
  // Four copies: MPI's on both sides, and those that pack and unpack the blocks.
  const double processor = (codec + 4 * sent.bytes * c.copy + sent.messages * c.overhead) * sharing;
  cost.messages += sent.messages;
  cost.link += link;
  cost.processor += processor;
  cost.waiting += sent.waits * c.latency;
  cost.peers = std::min(sent.messages, nodes - 1);
  cost.seconds += sent.waits * c.latency + link + processor;
}

}  // namespace

double pairwise_seconds(const inter::ExchangeSize& size, const Constants& constants) {
  Cost cost;
  pairwise_cost(cost, size, 1, 1, constants);
  return cost.seconds;
}

double bruck_seconds(const inter::ExchangeSize& size, const Constants& constants) {
  Cost cost;
  bruck_cost(cost, size, 1, constants);
  return cost.seconds;
}

const char* to_string(Schedule schedule) {
  static constexpr const char* names[] = {"plain ring", "plain halving", "plain leaders", "flat",
                                          "leader",     "sharded",       "bruck"};
  return names[std::size_t(schedule)];
}

bool is_plain(Schedule schedule) {
  return schedule == Schedule::ring || schedule == Schedule::halving ||
         schedule == Schedule::leaders;
}

const char* Cost::held_by() const {
  if (waiting >= link && waiting >= processor) return "latency";
  return link >= processor ? "link" : "processor";
}

Cost predict(Schedule schedule, double bytes, int bits, const Layout& layout, const Constants& c) {
  const double nodes = layout.nodes, per_node = layout.ranks_per_node, ranks = nodes * per_node;
  const double all = share(layout, per_node), one = share(layout, 1);
  const auto of = [&](double floats, double members) {
    return inter::ExchangeSize{quantized(bits), floats_in(floats), int(members)};
  };
  Cost cost;
  switch (schedule) {
    case Schedule::ring:
      cost = ring(bytes, ranks, nodes, all, c);
      break;
    case Schedule::halving:
      cost = halving(bytes, ranks, per_node, all, c);
      break;
    case Schedule::leaders:
      cost = halving(bytes, nodes, 1, one, c);
      within_node(cost, bytes, per_node, all, c);
      break;
    case Schedule::flat:  // a rank's peers on its own node cost the link nothing
      pairwise_cost(cost, of(bytes, ranks),
                    per_node * (ranks - per_node) / std::max(1.0, ranks - 1), all, c);
      cost.peers = ranks - per_node;
      break;
    case Schedule::leader:
      pairwise_cost(cost, of(bytes, nodes), 1, one, c);
      within_node(cost, bytes, per_node, all, c);
      break;
    case Schedule::sharded:
      pairwise_cost(cost, of(bytes / per_node, nodes), per_node, all, c);
      within_node(cost, bytes, per_node, all, c);
      break;
    case Schedule::bruck:
      bruck_cost(cost, of(bytes, nodes), one, c);
      if (nodes > 1) cost.memory += double(inter::bruck_need(of(bytes, nodes)).bytes);
      within_node(cost, bytes, per_node, all, c);
      break;
  }
  cost.memory += cost.peers * c.peer_memory;
  cost.setup = cost.peers * c.peer_setup;
  return cost;
}

Schedule used(double bytes, int bits, const Layout& layout) {
  inter::ExchangeSize size;
  size.format = quantized(bits);
  size.count = floats_in(bytes / layout.ranks_per_node);
  size.group_size = int(layout.nodes);
  return inter::schedule_for(size).run == inter::run_bruck ? Schedule::bruck : Schedule::sharded;
}

Schedule cheapest(bool plain, double bytes, int bits, const Layout& layout,
                  const Constants& constants) {
  // Of equal ones the schedule that comes first in kSchedules wins.
  Schedule best = plain ? Schedule::ring : Schedule::flat;
  for (const Schedule schedule : kSchedules)
    if (is_plain(schedule) == plain && predict(schedule, bytes, bits, layout, constants).seconds <
                                           predict(best, bytes, bits, layout, constants).seconds)
      best = schedule;
  return best;
}

}  // namespace slimpi::cost
