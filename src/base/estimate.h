// SPDX-License-Identifier: BSD-3-Clause
// What SLIMPI_ESTIMATE prints: the calls that the program made, and what slimpi would do to them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/report.h"

namespace slimpi {

constexpr std::array kEstimatedBits{8, 4, 2};
constexpr std::size_t kEstimatedWidths = kEstimatedBits.size();

// The calls of rank 0 that have a size class, communicator size, type, operation and fate in
// common. The first three arrays are by kEstimatedBits.
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
  std::array<double, kEstimatedWidths> bytes{}, seconds{}, error_sum{};
  std::uint64_t samples = 0;  // whose errors are in error_sum
  // Bypassed, but SLIMPI_TYPES=float,`type` would change that: the predictions are for that case.
  bool with_types = false;
  std::uint64_t unheld = 0;  // samples of doubles that float32 cannot hold; calls like them stay
  bool taken() const { return !reason.has_value(); }
};

struct Estimate {
  Report job;                              // what describes the job; no numbers
  std::uint64_t sampling_nanoseconds = 0;  // that the samples took; not part of anything else
  double wire = 0;                         // SLIMPI_WIRE; 0: not given, so no time is predicted
  int nodes = 0, ranks_per_node = 1;       // nodes: SLIMPI_NODES; 0: not given
  std::vector<EstimateRow> rows;
  std::uint64_t merged = 0;  // calls whose sizes are only known as means

  double wall_seconds() const { return job.wall_seconds - in_seconds(sampling_nanoseconds); }
};

// All calls together. Times and bytes of calls that stay with MPI count in all of them alike.
struct EstimateTotals {
  std::uint64_t calls = 0, taken = 0;
  double seconds = 0, bytes = 0;  // now
  double plain_seconds = 0;       // predicted for MPI's own sums
  std::array<double, kEstimatedWidths> bytes_then{}, seconds_then{};
};
EstimateTotals totals_of(const Estimate& estimate);

// Why most bytes would not be compressed; empty where more bytes would be than stay for any reason.
std::optional<BypassReason> dominant_reason(const Estimate& estimate);

std::string to_text(const Estimate& estimate);
std::string to_json(const Estimate& estimate);

}  // namespace slimpi
