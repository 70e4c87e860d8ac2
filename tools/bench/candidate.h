// SPDX-License-Identifier: BSD-3-Clause
// The candidates that slimpi-bench compares: plain MPI, and a communicator for each algorithm and
// number of bits.
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "options/config.h"
#include "tools/bench/options.h"
#include "tools/bench/world.h"

namespace slimpi::bench {

struct Candidate {
  std::string name;  // "plain", "bytegrad", ...; "slimpi" if the environment sets the algorithm
  double bits = 0;   // bits of a quantizer that was asked for by name; 0 otherwise
  double coded = 0;  // bytes on the wire for each byte of floats; 0: unknown
  MPI_Comm comm = MPI_COMM_NULL;
  Collective collective = Collective::allreduce;

  bool plain() const { return name == "plain"; }
  // Makes one sum of `count` floats. A reduce-scatter gives each rank an equal block. `in` may be
  // MPI_IN_PLACE.
  void run(const void* in, float* out, std::uint64_t count) const;
};

// Returns the options of every candidate: those of --set, else those of the environment and of its
// file, else the table's defaults. The library itself refuses a value that cannot be used.
Config config_of(const Options& options);

// Makes the candidates. The first is plain MPI; without a preloaded slimpi there are no others.
std::vector<Candidate> candidates(const Options& options, const World& world);
void release(std::vector<Candidate>& candidates);

// Returns whether all ranks get the same bytes with this algorithm.
bool guarantees_same_bytes(const std::string& algorithm);

// Returns the least time that the links allow, in seconds: each of `nodes` nodes sends and receives
// (nodes-1)/nodes of the coded buffer in each phase. `wire` is the rate of a node's link in bits
// per second.
double wire_limit(Collective collective, double bytes, double coded, int nodes, double wire);

}  // namespace slimpi::bench
