// SPDX-License-Identifier: BSD-3-Clause
// What slimpi-bench compares: plain MPI, and one communicator for each algorithm and width.
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "options/config.h"
#include "tools/bench/options.h"
#include "tools/bench/world.h"

namespace slimpi::bench {

struct Candidate {
  std::string name;  // "plain", "bytegrad", ...; "slimpi" where only the environment knows
  double bits = 0;   // of a quantizer that was asked for by name; 0 otherwise
  double coded = 0;  // bytes on the wire for each byte of floats; 0 is unknown
  MPI_Comm comm = MPI_COMM_NULL;
  Collective collective = Collective::allreduce;

  bool plain() const { return name == "plain"; }
  // One sum of `count` floats; `in` may be MPI_IN_PLACE. Of a reduce-scatter, to equal blocks.
  void run(const void* in, float* out, std::uint64_t count) const;
};

// The options of every candidate: --set, else the environment and its file, else the table's
// defaults. A value that cannot be used is refused by the library itself.
Config config_of(const Options& options);

// The first one is plain MPI, and the only one where slimpi is not preloaded.
std::vector<Candidate> candidates(const Options& options, const World& world);
void release(std::vector<Candidate>& candidates);

// Does every rank of this algorithm get the same bytes?
bool guarantees_same_bytes(const std::string& algorithm);

// The least time that the links allow, in seconds: each of `nodes` nodes sends and receives
// (nodes-1)/nodes of the coded buffer in each phase. `wire` is a node's link in bits per second.
double wire_limit(Collective collective, double bytes, double coded, int nodes, double wire);

}  // namespace slimpi::bench
