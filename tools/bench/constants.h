// SPDX-License-Identifier: BSD-3-Clause
// The cost model's constants as a JSON file, and as --wire and --latency change them.
#pragma once
#include <string>

#include "tools/bench/cost.h"
#include "tools/bench/options.h"

namespace slimpi::bench {

using namespace cost;

std::string to_json(const Constants& constants);
// Reads the file of this path. Returns "" or what is wrong with it.
std::string read_json(const std::string& path, Constants& constants);

// The constants of options.constants, or the ones built in if it is empty; then another link or
// latency where the options name one. measured_link stays that of the constants. Returns "" or
// what is wrong with the file.
std::string read_constants(const Options& options, Constants& constants);

// The layout of a job of this many nodes and ranks, and in a lab the one machine under them all.
Layout layout_of(double nodes, double ranks, const Constants& constants);

}  // namespace slimpi::bench
