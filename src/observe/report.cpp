// SPDX-License-Identifier: BSD-3-Clause
#include "observe/report.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace slimpi {

namespace {

bool write_file(const std::string& path, const std::string& text) {
  if (!within_file_size_limit(text.size())) {
    errno = EFBIG;
    return false;
  }
  const int file = open_result(path.c_str());
  if (file < 0) return false;
  const bool written = write_all(file, text);
  const int error = errno;
  if (close(file) != 0) return false;
  errno = error;
  return written;
}

}  // namespace

std::string bytes_text(double value) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, units[unit]);
}

std::string number_of(std::uint64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

Share float32_of(const Report& report, const Counts& counts) {
  const auto found = std::find(report.codecs.begin(), report.codecs.end(), "float32");
  if (found == report.codecs.end()) return {};
  return counts.codecs[std::size_t(found - report.codecs.begin())];
}

CallsBetweenNodes calls_between_nodes(const Report& report) {
  const std::uint64_t float32 = float32_of(report, report.own).calls;
  return {report.own.compressed - float32, float32};
}

std::optional<BypassReason> dominant_reason(const Counts& counts) {
  auto calls = counts.bypassed;
  calls[std::size_t(BypassReason::single_node)] += counts.exact_in_node;
  const auto most = std::max_element(calls.begin(), calls.end());
  if (*most == 0) return std::nullopt;
  return BypassReason(most - calls.begin());
}

Totals totals_of(const Report& report) {
  const double elsewhere =
      2.0 * (report.nodes - 1) * double(report.own.bytes_bypassed_elsewhere);  // at most so many
  const double left = double(report.job.bytes_bypassed) + elsewhere;
  const auto plain = double(report.job.bytes_plain);
  Totals totals{plain + left, double(report.job.bytes_sent) + left, 0};
  const auto in = double(report.job.bytes_in);
  const double coded = in > 0 ? 1 - double(float32_of(report, report.job).bytes_in) / in : 0;
  if (totals.plain > 0) totals.compressed_share = plain * coded / totals.plain;
  return totals;
}

std::string advice_of(BypassReason reason, const std::string& command) {
  std::string text = row_of(reason).advice;
  if (reason != BypassReason::datatype) return text;
  const std::string program = command.substr(0, command.find(' '));
  const bool python = program.substr(program.rfind('/') + 1).starts_with("python");
  return text + (python ? ": give --types float,double where they are float64, as NumPy arrays are "
                          "unless made otherwise, or make the buffers float32"
                        : ", so MPI makes them as without slimpi; SLIMPI_TYPES lists other types");
}

std::uint64_t states_never_reused(const Counts& counts) {
  return counts.state_first_times - std::min(counts.state_first_times, counts.state_second_times);
}

std::string algorithms_of(const Report& report) {
  std::string names;
  for (std::size_t i = 0; i < kAlgorithms; ++i) {
    if (report.own.algorithms[i].calls == 0) continue;
    const std::string name = to_string(AlgorithmId(i));
    // Named with its argument, such as the path of a hook.
    const bool chosen = report.algorithm.starts_with(name + ":");
    names += (names.empty() ? "" : ", ") + (chosen ? report.algorithm : name);
  }
  return names.empty() ? report.algorithm : names;
}

bool is_stream(const std::string& target) {
  return target == "stderr" || target == "stdout" || target == "-";
}

bool is_text(const std::string& target) {
  return is_stream(target) || target.ends_with(".txt") || target.ends_with(".log");
}

std::string why_not_writable(const std::string& path) {
  if (access(path.c_str(), W_OK) == 0) {
    struct stat file {};
    const bool directory = stat(path.c_str(), &file) == 0 && S_ISDIR(file.st_mode);
    return directory ? std::strerror(EISDIR) : "";
  }
  if (errno != ENOENT) return std::strerror(errno);
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
  return access(directory.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

Status write_report(const Report& report, const std::string& target) {
  return write_to(target, "SLIMPI_REPORT", is_text(target) ? to_text(report) : to_json(report));
}

Status write_to(const std::string& target, const char* variable, const std::string& text) {
  const bool written = is_stream(target)
                           ? write_all(target == "stderr" ? STDERR_FILENO : STDOUT_FILENO, text)
                           : write_file(target, text);
  if (written) return Status::ok;
  return fail(Status::unsupported,
              std::string(variable) + "=" + target + " cannot be written: " + why_no_result(errno));
}

}  // namespace slimpi
