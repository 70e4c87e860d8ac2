// SPDX-License-Identifier: BSD-3-Clause
// The job in which slimpi-bench runs, and the slimpi that may be preloaded into it. Except for the
// call that is measured, functions of MPI are called by their PMPI names, which slimpi does not
// intercept.
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
  bool speaks_for_node = true;  // this rank is the first of its node, and reads the node's counters
  std::string mpi;              // "MPICH 4.0.2"
  bool preloaded = false;       // slimpi is in this process, and takes the sums of this MPI over
};

// Finds out all of this. Call it after MPI_Init.
World enter();

// Loads an MPI, because the slimpi-bench of the wheel is linked to none. Call it before the first
// function of MPI. Takes an MPI with MPICH's ABI from the wheel's environment, or else from where
// the dynamic linker looks. Returns "", or why there is none.
std::string load_mpi();

// Returns a duplicate of a communicator that has these options of slimpi. The caller frees it.
MPI_Comm with_options(MPI_Comm comm, const SetOptions& options);

// Return the largest value, or the sum of the values, of all ranks.
double largest(double value);
std::uint64_t sum(std::uint64_t value);
bool all_equal(std::uint64_t value);

// Returns slimpi's counters of this rank since the program began; nothing if no slimpi is
// preloaded.
std::optional<slimpi_statistics_t> statistics();

// Returns how many bytes the network device `interface` of this host has sent since the device was
// made; nothing if the host has no such device.
std::optional<std::uint64_t> bytes_sent_by(const std::string& interface);

}  // namespace slimpi::bench
