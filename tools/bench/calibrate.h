// SPDX-License-Identifier: BSD-3-Clause
// Measures the constants of the cost model on the network and the processors at hand.
#pragma once
#include <string>

#include "tools/bench/cost.h"
#include "tools/bench/options.h"
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

// What was measured. link_spread: the median of the times of the link, divided by the least one.
struct Calibration {
  Constants constants;
  double link_spread = 1;
};

// Needs two nodes or more. The same on every rank.
Calibration calibrate(const World& world, const Contact& contact);

// For the terminal: what was measured, how it compares with the link of --wire, whether it can be
// relied on, and what to do with the file.
std::string summary(const Options& options, const Calibration& calibration);

// "mpiexec -n 2 -ppn 1 slimpi-bench --calibrate FILE", as messages give it.
std::string calibration_command(const std::string& file);

}  // namespace slimpi::bench
