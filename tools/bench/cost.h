// SPDX-License-Identifier: BSD-3-Clause
// The cost of an allreduce, on paper, by the schedules of plain MPI and of slimpi:
// slimpi-bench --predict prints it. The exchange between nodes is inter/cost_model.h's, by which
// the library chooses.
#pragma once
#include "inter/cost_model.h"

namespace slimpi::cost {

// The share of an Ethernet link's bits that carries the payload of full TCP segments.
inline constexpr double kPayload = 1448.0 / 1514.0;

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

// "link", "processor" or "latency": the largest part of a cost.
const char* held_by(const Cost& cost);

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
