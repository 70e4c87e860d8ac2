// SPDX-License-Identifier: BSD-3-Clause
// A picture of the results, drawn by gnuplot: time and bus bandwidth over size, with the limits
// that a node's link sets.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/measure.h"

namespace slimpi::bench {

// The gnuplot script, data included, that draws the picture into options.plot.
std::string plot_script(const Options& options, const World& world, const std::vector<Row>& rows);

// Draws it. False, and one line on standard error, when that fails; without gnuplot the script is
// kept beside where the picture would be.
bool plot(const Options& options, const World& world, const std::vector<Row>& rows);

}  // namespace slimpi::bench
