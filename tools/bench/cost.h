// SPDX-License-Identifier: BSD-3-Clause
// The predicted cost of an allreduce by the schedules of plain MPI and of slimpi, which
// slimpi-bench --predict prints. inter/cost_model.h computes the exchange between nodes; the
// library chooses by the same model.
#pragma once
#include "inter/cost_model.h"

namespace slimpi::cost {

// The share of an Ethernet link's bits that carries the payload of full TCP segments.
inline constexpr double kPayload = 1448.0 / 1514.0;

struct Layout {
  double nodes = 1, ranks_per_node = 1;
  double cores = 0;  // cores that the ranks of a node share; 0: a core for each rank
};

enum class Schedule {
  ring,     // plain MPI: 2(n-1) steps; each sends 1/n of the vector to the next rank of a ring
  halving,  // plain MPI: recursive halving, then doubling, as MPICH does between nodes
  leaders,  // plain MPI: one rank of each node sums its node; these ranks do `halving`
  flat,     // slimpi: reduce-scatter and all-gather between all ranks
  leader,   // slimpi: reduce-scatter and all-gather between one rank of each node
  sharded,  // slimpi: reduce-scatter and all-gather between nodes, by each rank for its shard
  bruck,    // slimpi: as leader, but in few messages that other nodes store and forward
};
inline constexpr std::array kSchedules{Schedule::ring, Schedule::halving, Schedule::leaders,
                                       Schedule::flat, Schedule::leader,  Schedule::sharded,
                                       Schedule::bruck};
const char* to_string(Schedule schedule);
bool is_plain(Schedule schedule);  // a schedule of plain MPI

// Returns the name of the part of a cost that takes longest: "link", "processor" or "latency".
const char* held_by(const Cost& cost);

// Returns the cost of one sum of `bytes` bytes of floats. The schedules of plain MPI ignore `bits`;
// slimpi's send values quantized to `bits` bits in buckets of 512.
Cost predict(Schedule schedule, double bytes, int bits, const Layout& layout,
             const Constants& constants);

// Returns the schedule that slimpi uses between nodes for quantizers: `sharded` or `bruck`.
Schedule used(double bytes, int bits, const Layout& layout);

// Returns the cheapest schedule of plain MPI, if `plain` is true, or else of slimpi.
Schedule cheapest(bool plain, double bytes, int bits, const Layout& layout,
                  const Constants& constants);

}  // namespace slimpi::cost
