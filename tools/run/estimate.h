// SPDX-License-Identifier: BSD-3-Clause
// slimpi-run --estimate: a process beside the program that predicts from what the library counts.
#pragma once
#include <string>

#include "tools/estimate/estimate.h"

namespace slimpi::tools {

// Starts it, in the process of the job's first rank; it is no child of the program that follows.
// The library writes to a pipe whose number is in SLIMPIRUN_ESTIMATE. At the end of each MPI
// program that has done so, the process writes the estimate to `target`, as SLIMPI_ESTIMATE names
// one. It ends when nobody has the pipe open any more. Without a pipe or a process the library
// writes what it counts to the target itself.
void start_estimate(const std::string& target, const Cluster& cluster);

}  // namespace slimpi::tools
