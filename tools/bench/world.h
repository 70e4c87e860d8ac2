// SPDX-License-Identifier: BSD-3-Clause
// The job in which slimpi-bench runs, and the slimpi that may be preloaded into it. All calls
// except the measured call use PMPI names, which slimpi does not intercept.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

#include "slimpi.h"
#include "tools/bench/options.h"

namespace slimpi::bench {

struct World {
  int rank = 0, ranks = 1;
  int nodes = 1;
  bool speaks_for_node = true;  // the first rank of its node: reads the node's counters
  std::string mpi;              // "MPICH 4.0.2"
  bool preloaded = false;       // slimpi is in this process, and takes the sums of this MPI
};

// Call after MPI_Init.
World enter();

// Loads an MPI, before the first MPI function: the wheel's slimpi-bench is linked to no MPI. Takes
// an MPI with MPICH's ABI from the wheel's environment, or from where the loader looks. Returns "",
// or why there is none.
std::string load_mpi();

// Returns a copy of a communicator, with these options of slimpi.
MPI_Comm with_options(MPI_Comm comm, const SetOptions& options);

// Return the result over the values of all ranks.
double largest(double value);
std::uint64_t sum(std::uint64_t value);
bool all_equal(std::uint64_t value);

// Returns slimpi's counters of this rank since the start; nothing if no slimpi is preloaded.
std::optional<slimpi_statistics_t> statistics();

// Returns the bytes that the network device `interface` of this host has sent since it was made;
// nothing if the host has no such device.
std::optional<std::uint64_t> bytes_sent_by(const std::string& interface);

}  // namespace slimpi::bench
