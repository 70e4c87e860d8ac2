// SPDX-License-Identifier: BSD-3-Clause
// The command line of slimpi-bench.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options/option_types.h"

namespace slimpi::bench {

using SetOptions = std::vector<std::pair<std::string, std::string>>;  // names and values

struct Options {
  std::vector<std::uint64_t> sizes;  // bytes, each a multiple of a float
  std::vector<std::string> algorithms;
  std::vector<double> bits;
  SetOptions set;      // options of slimpi that hold for every algorithm
  int iterations = 0;  // 0: as many as fit into two seconds
  int warmup = 2;
  bool in_place = false;
  Collective collective = Collective::allreduce;
  bool check = true;
  std::string json, plot;  // files; "-" is standard output for json
  double wire = 0;         // bits per second of a node's link; 0 is unknown
  std::string interface;   // network device whose bytes are counted; "" is none
  bool digests = false;
  bool predict = false;
  std::uint64_t nodes = 0;  // nodes of the predicted job; 0: a table for many numbers
  std::uint64_t ranks_per_node = 1;
  double latency = 0;       // seconds, one way; 0: the built-in latency
  std::uint64_t cores = 0;  // cores of a node; 0: a core for every rank
};

// The result of parse(). If `status` has a value, the program prints `text` (to standard output if
// the status is 0, else to standard error) and ends with this status.
struct Parsed {
  Options options;
  std::optional<int> status;
  std::string text;
};
Parsed parse(int argc, char** argv);

// Returns a number of KiB as text, such as 64, 65536 or 0.5, for a column of a table.
std::string in_kib(std::uint64_t bytes);

}  // namespace slimpi::bench
