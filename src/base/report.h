// SPDX-License-Identifier: BSD-3-Clause
// The summary at the end: as JSON for SLIMPI_REPORT=file, as text for SLIMPI_REPORT=stderr.
#pragma once
#include <string>

#include "base/statistics.h"
#include "base/status.h"

namespace slimpi {

struct Report {
  std::string version, mpi, algorithm;
  int ranks = 0, nodes = 0;
  int ranks_counted = 0;  // whose bytes are in `job`; fewer than ranks when no call spanned the job
  Counts own;             // rank 0's: calls, seconds, buffers
  Counts job;             // summed over the ranks: bytes
  double mean_error = 0, max_error = 0;
  std::uint64_t most_scratch = 0;  // bytes that this process held at a time
  std::uint64_t most_segments = 0, most_segment_bytes = 0;  // shared memory that it had mapped
};

std::string to_json(const Report& report);
std::string to_text(const Report& report);

// Why no file of this name could be written now, such as "No such file or directory"; "" if one
// could.
std::string why_not_writable(const std::string& path);

// Writes the report to where `target` says: "stderr" or a file's name.
Status write_report(const Report& report, const std::string& target);

}  // namespace slimpi
