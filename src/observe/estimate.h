// SPDX-License-Identifier: BSD-3-Clause
// The numbers of SLIMPI_ESTIMATE, counted while MPI makes all calls: how many calls slimpi would
// compress, and to how many bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/report.h"
#include "options/option_types.h"

namespace slimpi {

// A row of the estimate: the calls of rank 0 that have the same size class and the same properties
// below, with their totals.
struct CountedCalls {
  std::size_t size_class = 0;  // buffers of 2^size_class to 2^(size_class + 1) - 1 bytes
  bool empty = false;          // buffers of no bytes, whatever the size class
  int ranks = 0;               // ranks of the communicator
  Collective collective = Collective::allreduce;
  std::string type, op;  // "float", "sum"
  bool blocking = true;
  std::optional<BypassReason> reason;                   // empty: would be compressed
  std::uint64_t calls = 0, bytes = 0, nanoseconds = 0;  // time: of blocking calls, in MPI
  std::uint64_t values = 0;  // elements that slimpi can sum as floats; 0 for other types and ops
  double plain_bytes = 0;    // between nodes, if the sum is bandwidth-optimal
};

struct Estimate {
  Report job;                         // describes the job; its counts are not used
  std::uint64_t bucket = 0;           // SLIMPI_BUCKET
  std::uint64_t min_size = 0;         // SLIMPI_MIN_SIZE
  std::vector<CountedCalls> counted;  // compressed calls first, the longest buffers first
};

// Returns the reason that keeps the most bytes from being compressed, or nothing if at least as
// many bytes would be compressed.
std::optional<BypassReason> dominant_reason(const Estimate& estimate);

std::string to_text(const Estimate& estimate);
std::string to_json(const Estimate& estimate);

inline constexpr int kEstimatedBits[] = {8, 4, 2};

// Returns the bytes that these calls would send between nodes with `bits` bits per value, with
// bytegrad's scales but without message headers; for calls left to MPI, the bytes of MPI's own sum.
double bytes_at(const Estimate& estimate, const CountedCalls& calls, int bits);

}  // namespace slimpi
