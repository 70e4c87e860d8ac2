// SPDX-License-Identifier: BSD-3-Clause
// Measures the constants of the cost model on the network and the processors at hand.
#pragma once
#include <string>

#include "tools/bench/cost.h"
#include "tools/bench/options.h"
#include "tools/bench/world.h"

namespace slimpi::bench {

using namespace cost;

// The cost of a new peer for a rank: the seconds of the first message minus those of the second,
// and the memory. first_contact() measures only peers that MPI has not connected yet, so call it
// right after MPI_Init.
struct Contact {
  double seconds = 0;
  double bytes = 0;
};
Contact first_contact();

// The results. link_spread: the median of the times of the link, divided by the least time.
struct Calibration {
  Constants constants;
  double link_spread = 1;
};

// Measures on two nodes or more. All ranks get the same result.
Calibration calibrate(const World& world, const Contact& contact);

// Returns a text for the terminal: the results, their comparison with the link of --wire, whether
// they can be relied on, and what to do with the file.
std::string summary(const Options& options, const Calibration& calibration);

// Returns, for messages, "mpiexec -n 2 -ppn 1 slimpi-bench --calibrate FILE".
std::string calibration_command(const std::string& file);

}  // namespace slimpi::bench
