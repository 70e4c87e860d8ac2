// SPDX-License-Identifier: BSD-3-Clause
// What SLIMPI_ESTIMATE counts: the calls that the program made, and what policy would do with them.
// The tools predict from it, for these or for other nodes (tools/estimate/).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/report.h"
#include "options/option_types.h"

namespace slimpi {

constexpr std::array kEstimatedBits{8, 4, 2};
constexpr std::size_t kEstimatedWidths = kEstimatedBits.size();
using ByEstimatedBits = std::array<double, kEstimatedWidths>;

// What the bytes and the time of a call depend on, if slimpi took it.
struct CountedWay {
  int nodes = 0;   // of the communicator; 0: the ranks have not met, so that they do not know
  int shards = 1;  // between these nodes
  Hierarchy hierarchy = Hierarchy::sharded;
  std::uint32_t bucket = 512;
};

// The calls of rank 0 that have all of this in common.
struct CountedCalls {
  std::uint64_t size = 0;  // bytes of a buffer; of merged calls, 2^n of their size class
  int ranks = 0;           // 0: not known
  std::string type, op;    // "float", "sum"
  std::size_t width = 0;   // bytes of an element of the type, where slimpi sums it; else 0
  bool blocking = true;
  std::optional<BypassReason> reason;  // empty: policy would take the calls
  std::optional<CountedWay> way;       // empty where slimpi would leave them to MPI anywhere
  std::uint64_t calls = 0, bytes = 0;
  std::uint64_t nanoseconds = 0, least = 0;  // inside MPI: all calls, the fastest; blocking only
  std::uint64_t samples = 0;                 // whose errors are in error_sum
  std::uint64_t unheld = 0;  // samples of doubles that float32 cannot hold; calls like them stay
  ByEstimatedBits error_sum{};
};

struct Estimate {
  Report job;                              // what describes the job; no numbers
  std::uint64_t sampling_nanoseconds = 0;  // taken by the samples; not part of anything else
  int ranks_per_node = 1;                  // SLIMPI_RANKS_PER_NODE, at least 1
  unsigned cores = 1;                      // of the machine
  bool timed_codec = false;
  ByEstimatedBits encode{}, decode{};  // seconds per byte of floats: the fastest samples
  std::vector<CountedCalls> counted;
  std::uint64_t merged = 0;  // calls whose sizes are only known as means
};

std::string to_json(const Estimate& estimate);

}  // namespace slimpi
