// SPDX-License-Identifier: BSD-3-Clause
// The report at the end: as JSON for SLIMPI_REPORT=file, as text for SLIMPI_REPORT=stderr.
#pragma once
#include <string>

#include "base/statistics.h"
#include "base/status.h"

namespace slimpi {

struct Report {
  std::string version, mpi, algorithm;
  int ranks = 0, nodes = 0;
  int ranks_counted =
      0;       // ranks whose bytes are in `job`; fewer than ranks when no call spanned the job
  Counts own;  // of rank 0: calls, seconds, buffers
  Counts job;  // summed over the ranks: bytes
  double mean_error = 0, max_error = 0;
  std::uint64_t most_scratch = 0;  // maximum of bytes held by this process at one time
  std::uint64_t most_segments = 0,
                most_segment_bytes = 0;  // maximum of shared memory mapped at one time
};

std::string to_json(const Report& report);
std::string to_text(const Report& report);

// Why no file of this name can be written now, such as "No such file or directory"; "" if one can.
std::string why_not_writable(const std::string& path);

// Writes the report to `target`: "stderr" or a file name.
Status write_report(const Report& report, const std::string& target);

}  // namespace slimpi
