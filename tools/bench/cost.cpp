// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/cost.h"

#include <algorithm>
#include <cmath>

#include "inter/bruck.h"
#include "inter/schedule.h"

namespace slimpi::cost {

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

// Returns how many ranks share a core while `active` ranks of each node work.
double share(const Layout& layout, double active) {
  if (layout.cores <= 0) return 1;
  return std::max(1.0, active / layout.cores);
}

// Adds the cost of `swaps` exchanges of messages, one after the other. In each, a rank sends
// `bytes` bytes to another rank and receives as many, while `flows` ranks of its node do the same.
// MPI overlaps an exchange with no other work; the time of an exchange is its latency and the
// longer of its link time and its processor time.
void swap(Cost& cost, double swaps, double bytes, bool between_nodes, double flows, double sharing,
          const Constants& c) {
  // `bytes` are those of one rank, and the ranks of a node share its link.
  const double link = between_nodes ? flows * bytes * c.link : 0;
  const double processor =
      (c.overhead + 2 * bytes * (between_nodes ? c.copy : c.node_copy)) * sharing;
  const double waiting = between_nodes ? c.latency : 0;
  cost.messages += swaps;
  cost.link += swaps * link;
  cost.processor += swaps * processor;
  cost.waiting += swaps * waiting;
  cost.seconds += swaps * (waiting + std::max(link, processor));
}

void work(Cost& cost, double seconds) {
  cost.processor += seconds;
  cost.seconds += seconds;
}

// The ring algorithm of an allreduce. In each step a rank sends 1/ranks of the vector to the next
// rank and receives as much from the one before it, so all steps cost the same.
Cost ring(double bytes, double ranks, double nodes, double sharing, const Constants& c) {
  Cost cost;
  swap(cost, 2 * (ranks - 1), bytes / ranks, nodes > 1, 1, sharing, c);
  work(cost, (ranks - 1) / ranks * bytes * c.add * sharing);
  cost.peers = nodes > 1 ? std::min(2.0, nodes - 1) : 0;
  return cost;
}

// Recursive halving and doubling. If the number of ranks is not a power of two, the ranks beyond it
// first send their buffer to another rank, and get the sum from it at the end.
Cost halving(double bytes, double ranks, double per_node, double sharing, const Constants& c) {
  Cost cost;
  // The largest power of two among the ranks.
  const double power = std::exp2(std::floor(std::log2(ranks)));
  if (ranks > power) {
    swap(cost, 2, bytes, per_node < 2, 1, sharing, c);
    work(cost, bytes * c.add * sharing);
  }
  double part = bytes / 2;
  // A step of the halving and the step of the doubling that undoes it move the same number of
  // bytes.
  for (double distance = power / 2; distance >= 1; distance /= 2, part /= 2) {
    const bool away = distance >= per_node;
    swap(cost, 2, part, away, per_node, sharing, c);
    work(cost, part * c.add * sharing);
    cost.peers += away ? 1 : 0;
  }
  return cost;
}

// Adds the cost inside a node: its ranks sum block by block through shared memory, and each reads
// the result from there.
void within_node(Cost& cost, double bytes, double per_node, double sharing, const Constants& c) {
  if (per_node < 2) return;
  const double sum = bytes * (c.node_copy + c.add), copy = bytes * c.node_copy;
  work(cost, (sum + copy) * sharing);
}

}  // namespace

const char* to_string(Schedule schedule) {
  static constexpr const char* names[] = {"plain ring", "plain halving", "plain leaders", "flat",
                                          "leader",     "sharded",       "bruck"};
  return names[std::size_t(schedule)];
}

bool is_plain(Schedule schedule) {
  return schedule == Schedule::ring || schedule == Schedule::halving ||
         schedule == Schedule::leaders;
}

const char* held_by(const Cost& cost) {
  if (cost.waiting >= cost.link && cost.waiting >= cost.processor) return "latency";
  return cost.link >= cost.processor ? "link" : "processor";
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
      add_pairwise(cost, of(bytes, ranks), per_node * (ranks - per_node) / std::max(1.0, ranks - 1),
                   all, c);
      cost.peers = ranks - per_node;
      break;
    case Schedule::leader:
      add_pairwise(cost, of(bytes, nodes), 1, one, c);
      within_node(cost, bytes, per_node, all, c);
      break;
    case Schedule::sharded:
      add_pairwise(cost, of(bytes / per_node, nodes), per_node, all, c);
      within_node(cost, bytes, per_node, all, c);
      break;
    case Schedule::bruck:
      add_bruck(cost, of(bytes, nodes), one, c);
      if (nodes > 1) cost.memory += double(inter::bruck_need(of(bytes, nodes)).bytes);
      within_node(cost, bytes, per_node, all, c);
      break;
  }
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
  // If schedules cost the same, the one that comes first in kSchedules is taken.
  Schedule best = plain ? Schedule::ring : Schedule::flat;
  for (const Schedule schedule : kSchedules)
    if (is_plain(schedule) == plain && predict(schedule, bytes, bits, layout, constants).seconds <
                                           predict(best, bytes, bits, layout, constants).seconds)
      best = schedule;
  return best;
}

}  // namespace slimpi::cost
