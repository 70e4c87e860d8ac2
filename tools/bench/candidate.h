// SPDX-License-Identifier: BSD-3-Clause
// The candidates that slimpi-bench compares: plain MPI, and a communicator of slimpi for each
// algorithm and number of bits.
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
  double bits = 0;   // bits of the quantizer, if --algorithm named one; 0 otherwise
  double coded = 0;  // bytes on the wire for each byte of floats; 0: unknown
  MPI_Comm comm = MPI_COMM_NULL;
  Collective collective = Collective::allreduce;

  bool plain() const { return name == "plain"; }
  // Makes one sum of `count` floats, or a reduce-scatter that gives each rank an equal block. `in`
  // may be MPI_IN_PLACE.
  void run(const void* in, float* out, std::uint64_t count) const;
};

// Returns the options of slimpi that hold for every candidate: those of --set; for the others, the
// values of the environment and its file, or the defaults. Only the library checks the values.
Config config_of(const Options& options);

// Makes the candidates, collectively over MPI_COMM_WORLD. The first is plain MPI, and the only one
// if no slimpi is preloaded. The caller frees their communicators with release().
std::vector<Candidate> candidates(const Options& options, const World& world);
void release(std::vector<Candidate>& candidates);

// Returns whether all ranks get the same bytes from a sum by this algorithm.
bool guarantees_same_bytes(const std::string& algorithm);

// Returns the least time, in seconds, that the links allow for a call: in each of its phases each
// of the `nodes` nodes must send and receive (nodes-1)/nodes of the encoded buffer. `wire` is the
// rate of a node's link in bits per second.
double wire_limit(Collective collective, double bytes, double coded, int nodes, double wire);

}  // namespace slimpi::bench
