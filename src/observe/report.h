// SPDX-License-Identifier: BSD-3-Clause
// The report that rank 0 writes at the end of the job, as text or as JSON.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "observe/statistics.h"

namespace slimpi {

constexpr double in_seconds(std::uint64_t nanoseconds) {
  return double(nanoseconds) * 1e-9;
}

struct Report {
  std::string version, mpi;
  std::string algorithm;  // SLIMPI_ALGORITHM
  std::string command, date;
  double wall_seconds = 0;
  std::vector<std::pair<std::string, std::string>> options;  // set by the user: name and value
  std::vector<std::string> hosts;            // each once, in the order of their first rank
  std::vector<std::string> codecs;           // by UsedCodec; "8" is 8 bits
  std::vector<AutoChoice> choices;           // of the autotuner
  std::vector<std::string> unmatched_rules;  // rows of SLIMPI_RULES that decided no call of rank 0
  int ranks = 0, nodes = 0;
  int ranks_counted = 0;  // ranks that `job` sums over; 1 if no float sum had all ranks
  Counts own, job;        // own: of rank 0; job: summed over the ranks
  std::array<VerifiedErrors, kSizeClasses>
      errors{};  // errors of rank 0's calls that SLIMPI_VERIFY checked
};

// The bytes that the job's sums of any type send between nodes: `plain` with plain MPI, `done` in
// this job. A sum that MPI ran adds the bytes of an optimal sum to both.
struct Totals {
  double plain = 0, done = 0;
  double compressed_share = 0;  // the part of `plain` that was compressed, from 0 to 1
};
Totals totals_of(const Report& report);

// The number of rank 0's calls between nodes, by the form of the values that were sent.
struct CallsBetweenNodes {
  std::uint64_t compressed = 0, float32 = 0, float64 = 0;
};
CallsBetweenNodes calls_between_nodes(const Report& report);

// Returns calls, bytes and time of the sums that were sent in a codec, such as float32. `counts` is
// report.own or report.job.
Share share_of(const Report& report, const Counts& counts, const char* codec);

// Returns the most frequent reason why sums were not compressed, or nothing if every call was. Sums
// that slimpi ran inside one node count as single_node.
std::optional<BypassReason> dominant_reason(const Counts& counts);

// Returns the advice for a user whose calls mostly have this reason. `command` is the command of
// the program.
std::string advice_of(BypassReason reason, const std::string& command);

// Returns the number of tensor states (data kept from call to call) that only one call has used.
// After a state is dropped, its next two calls count as a first and a second call again.
std::uint64_t states_never_reused(const Counts& counts);

// Returns the algorithms that compressed calls, joined by ", ", or SLIMPI_ALGORITHM if there were
// none.
std::string algorithms_of(const Report& report);

std::string to_json(const Report& report);
std::string to_text(const Report& report);

// Return whether a target of SLIMPI_REPORT is a stream, and whether it gets text. "stdout", "-" and
// "stderr" are streams and get text. A file gets text if its name ends in .txt or .log, otherwise
// JSON.
bool is_stream(const std::string& target);
bool is_text(const std::string& target);

// Returns why this file cannot be written now, such as "No such file or directory", or "".
std::string why_not_writable(const std::string& path);

// Writes a text to `target`, the value of the option `variable`.
Status write_to(const std::string& target, const char* variable, const std::string& text);

// Return numbers as text: bytes_text(1310720) is "1.25 MiB", where a KiB is 1024 bytes, and
// number_of(2, "call") is "2 calls".
std::string bytes_text(double value);
std::string number_of(std::uint64_t number, const char* what);

}  // namespace slimpi
