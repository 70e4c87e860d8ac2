// SPDX-License-Identifier: BSD-3-Clause
// Programs that slimpi-info starts for what they do better. Each function becomes the program, with
// its output and its exit status; it returns only where it cannot be started, with one line.
#pragma once
#include <string>
#include <vector>

namespace slimpi::info {

// hwloc's lstopo: a picture of this machine as SVG. `file`: overwritten; "-" is standard output.
// `legend`: a sentence below it.
std::string draw_topology(const std::string& file, const std::string& legend);

// The slimpi-trace of this installation.
std::string sum_up_traces(const std::vector<std::string>& files);

}  // namespace slimpi::info
