// SPDX-License-Identifier: BSD-3-Clause
// What slimpi would save, predicted from what SLIMPI_ESTIMATE counted. `slimpi-run --estimate`
// prints it at the end of a job, `slimpi-info --estimate` from a file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/estimate.h"

namespace slimpi::tools {

// The network that the predictions are for.
struct Cluster {
  double wire = 0;  // bits per second of a node's link; 0: not known, so no time is predicted
  int nodes = 0;    // 0: those of the job; else with SLIMPI_RANKS_PER_NODE of the job each, or one
};

// The calls of rank 0 that have a size class, communicator size, type, operation and fate in
// common.
struct EstimateRow {
  std::size_t size_class = 0;  // buffers of 2^size_class to 2^(size_class + 1) - 1 bytes
  bool empty = false;          // buffers of no bytes; then the size class says nothing
  int ranks = 0;               // 0: not known
  std::string type, op;        // "float", "sum"
  bool blocking = true;
  std::optional<BypassReason> reason;  // empty: slimpi would compress the calls
  std::uint64_t calls = 0, bytes_in = 0;
  std::uint64_t nanoseconds = 0, least = 0;  // inside MPI: all calls, the fastest; blocking only
  double bytes_now = 0;                      // between nodes, of the job, with an optimal sum
  double waiting_seconds = 0;                // for late ranks; also part of the two predictions
  double plain_seconds = 0;                  // predicted for MPI's own sum
  ByEstimatedBits bytes{}, seconds{}, error_sum{};
  std::uint64_t samples = 0;  // whose errors are in error_sum
  // Bypassed, but SLIMPI_TYPES=float,`type` would change that: the predictions are for that case.
  bool with_types = false;
  std::uint64_t unheld = 0;  // as of CountedCalls
  bool taken() const { return !reason.has_value(); }
};

struct Prediction {
  Estimate counted;  // the job has the wall time without the samples
  Cluster cluster;
  std::vector<EstimateRow> rows;
};

Prediction predict(Estimate counted, const Cluster& cluster);

// All calls together. Times and bytes of calls that stay with MPI count in all columns.
struct EstimateTotals {
  std::uint64_t calls = 0, taken = 0;
  double seconds = 0, bytes = 0;  // now
  double plain_seconds = 0;       // predicted for MPI's own sums
  ByEstimatedBits bytes_then{}, seconds_then{};
};
EstimateTotals totals_of(const Prediction& prediction);

// Why most bytes would not be compressed; empty where more bytes would be than stay for any reason.
std::optional<BypassReason> dominant_reason(const Prediction& prediction);

// Reads the JSON that the library wrote. Returns "" or what is wrong with it.
std::string read_estimate(const std::string& json, Estimate* counted);

std::string to_text(const Prediction& prediction);
// The library's JSON with what the predictions are for, and the keys `rows` and `total`.
std::string to_json(const std::string& json, const Prediction& prediction);

// Whether it is all of a JSON value.
bool is_complete(const std::string& json);

}  // namespace slimpi::tools
