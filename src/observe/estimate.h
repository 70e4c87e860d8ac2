// SPDX-License-Identifier: BSD-3-Clause
// What SLIMPI_ESTIMATE counts: the calls that the program made, and what policy would do with them.
// The tools predict from it (tools/estimate/).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/report.h"

namespace slimpi {

constexpr std::array kEstimatedBits{8, 4, 2};
constexpr std::size_t kEstimatedWidths = kEstimatedBits.size();
using ByEstimatedBits = std::array<double, kEstimatedWidths>;

// How slimpi would do a sum: what the bytes and the time of a compressed call depend on. No nodes:
// it would leave the sum to MPI.
struct EstimatedWay {
  int nodes = 0, ranks = 0, group_size = 0, shards = 1;
  bool flat = false;
  std::uint32_t bucket = 512;
};

// The calls of rank 0 that have all of this in common.
struct CountedCalls {
  std::uint64_t size = 0;  // bytes of a buffer; of merged calls, 2^n of their size class
  int ranks = 0;           // 0: not known
  std::string type, op;    // "float", "sum"
  std::size_t width = 0;   // bytes of an element of the type, where slimpi sums it; else 0
  bool blocking = true;
  std::optional<BypassReason> reason;  // empty: slimpi would compress the calls
  EstimatedWay way;
  std::uint64_t calls = 0, bytes = 0;
  std::uint64_t nanoseconds = 0, least = 0;  // inside MPI: all calls, the fastest; blocking only
  std::uint64_t samples = 0;                 // whose errors are in error_sum
  std::uint64_t unheld = 0;  // samples of doubles that float32 cannot hold; calls like them stay
  ByEstimatedBits error_sum{};
};

struct Estimate {
  Report job;                              // what describes the job; no numbers
  std::uint64_t sampling_nanoseconds = 0;  // taken by the samples; not part of anything else
  double wire = 0;                         // SLIMPI_WIRE; 0: not given, so no time is predicted
  int nodes = 0, ranks_per_node = 1;       // nodes: SLIMPI_NODES; 0: not given
  unsigned cores = 1;                      // of the machine
  bool timed_codec = false;
  ByEstimatedBits encode{}, decode{};  // seconds per byte of floats: the fastest samples
  std::vector<CountedCalls> counted;
  std::uint64_t merged = 0;  // calls whose sizes are only known as means
};

std::string to_json(const Estimate& estimate);

}  // namespace slimpi
