// SPDX-License-Identifier: BSD-3-Clause
// What an allreduce costs, on paper: a model of latency, bandwidth, arithmetic, messages and memory
// for each schedule. The library chooses schedules by it, estimates and slimpi-bench
// --predict print it, and slimpi-bench --calibrate measures its constants. Plain arithmetic, no
// MPI.
//
// All times are in seconds, all sizes in bytes; "per byte" of arithmetic is per byte of floats.
#pragma once
#include <array>

#include "inter/segment_length.h"

namespace slimpi::cost {

// An element for each number of bits; the first is not used.
using ByBits = std::array<double, kernels::kMostBits + 1>;
constexpr ByBits same(double value) {
  ByBits all{};
  all.fill(value);
  return all;
}

// The share of an Ethernet link's bits that carries the payload of full TCP segments.
inline constexpr double kPayload = 1448.0 / 1514.0;

// The defaults are for TCP on a link of 10 Gbit/s: the first three were fitted to times of the
// schedules there, the others are guesses.
struct Constants {
  double latency = 24e-6;         // of a small message between nodes, one way
  double overhead = 3e-6;         // of a processor, for each message that a rank sends and receives
  double link = 0.8e-9;           // of a node's link, per byte of payload in one direction
  double exchange = 0.8e-9;       // per byte where MPI swaps one large message between two nodes
  double copy = 0.5e-9;           // of a processor, per byte sent or received
  double add = 0.15e-9;           // of a processor, per byte of floats added to a sum
  ByBits encode = same(0.1e-9);   // per byte of floats, at each number of bits
  ByBits decode = same(0.1e-9);   // decode and add, likewise
  double node_copy = 0.2e-9;      // of a processor, per byte handed to a rank of the same node
  double peer_memory = 0;         // of a rank, for each rank of another node that it talks to
  double peer_setup = 0;          // the first time that two ranks talk
  int cores = 1;                  // of the machine that the constants were measured on
  double measured_link = 0.8e-9;  // `link` of the network that the constants were measured on

  // Whether `link` is faster than the network that the constants were measured on. The processor
  // may decide there, and its share was not seen.
  bool beyond_measured() const { return link < 0.95 * measured_link; }
};

// What the busiest rank sends in a sum of one shard between nodes. The size's `me` and `staged` do
// not count.
struct Traffic {
  double waits = 0;     // steps that wait for the one before
  double messages = 0;  // sent
  double bytes = 0;     // of these, headers included
  double owners = 1;    // ranks that own a chunk
  double chunk = 0;     // bytes of floats of the longest chunk
};
Traffic pairwise_traffic(const inter::ExchangeSize& size);
Traffic bruck_traffic(const inter::ExchangeSize& size);

// Bytes that all ranks of the group together put between nodes in the pairwise schedule.
double pairwise_bytes(const inter::ExchangeSize& size);

// Seconds of the exchange of a shard, on ranks that have a link and a core each.
double pairwise_seconds(const inter::ExchangeSize& size, const Constants& constants);
double bruck_seconds(const inter::ExchangeSize& size, const Constants& constants);

struct Layout {
  double nodes = 1, ranks_per_node = 1;
  double cores = 0;          // shared by the ranks of a node; 0: one for each
  bool one_machine = false;  // a lab: `cores` are those of all nodes together
};

enum class Schedule {
  ring,     // plain MPI: 2(n-1) steps with ring peers of 1/n
  halving,  // plain MPI: recursive halving, then doubling, as MPICH does between nodes
  leaders,  // plain MPI: one rank of a node sums, the leaders halve and double
  flat,     // slimpi: reduce-scatter and all-gather between all ranks
  leader,   // slimpi: the same between one rank of each node
  sharded,  // slimpi: the same between all nodes, by every rank for its shard
  bruck,    // slimpi: as leader, in few messages that other nodes store and forward
};
inline constexpr std::array kSchedules{Schedule::ring, Schedule::halving, Schedule::leaders,
                                       Schedule::flat, Schedule::leader,  Schedule::sharded,
                                       Schedule::bruck};
const char* to_string(Schedule schedule);
bool is_plain(Schedule schedule);  // one that MPI runs

struct Cost {
  double seconds = 0;           // of the whole call
  double link = 0;              // seconds in which a node's link is busy
  double processor = 0;         // a rank's processor, with codec, sums, copies and messages
  double waiting = 0;           // latency that nothing hides
  double messages = 0;          // sent by a rank
  double peers = 0;             // ranks of other nodes that a rank talks to
  double memory = 0;            // of a rank for its peers
  double setup = 0;             // once, at the first call
  const char* held_by() const;  // "link", "processor" or "latency": the largest part
};

// One sum of `bytes` bytes of floats; `bits` is ignored by plain schedules. The codec is
// quantized with buckets of 512.
Cost predict(Schedule schedule, double bytes, int bits, const Layout& layout,
             const Constants& constants);

// The schedule that slimpi uses between nodes for quantizers: `sharded` or `bruck`.
Schedule used(double bytes, int bits, const Layout& layout);

// The cheapest schedule among the plain ones, or among those that slimpi runs.
Schedule cheapest(bool plain, double bytes, int bits, const Layout& layout,
                  const Constants& constants);

}  // namespace slimpi::cost
