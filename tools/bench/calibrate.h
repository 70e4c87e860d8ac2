// SPDX-License-Identifier: BSD-3-Clause
// Measures the constants of the cost model on the network and the processors at hand.
#pragma once
#include "inter/cost_model.h"
#include "tools/bench/world.h"

namespace slimpi::bench {

using namespace cost;

// What it costs a rank that another one becomes its peer: the first message less the second, and
// the memory. Sees only peers that MPI has not connected yet: call it right after MPI_Init.
struct Contact {
  double seconds = 0;
  double bytes = 0;
};
Contact first_contact();

// Needs two nodes or more. The same on every rank.
Constants calibrate(const World& world, const Contact& contact);

}  // namespace slimpi::bench
