// SPDX-License-Identifier: BSD-3-Clause
#include "base/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/option_types.h"

namespace slimpi {

namespace {

Status write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return fail(Status::unsupported,
                  std::string("the report cannot be written: ") + std::strerror(errno));
    text.remove_prefix(std::size_t(written));
  }
  return Status::ok;
}

}  // namespace

Totals totals_of(const Report& report) {
  const double elsewhere =
      2.0 * (report.nodes - 1) * double(report.own.bytes_left_elsewhere);  // at most so many
  const double left = double(report.job.bytes_left) + elsewhere;
  const auto plain = double(report.job.bytes_plain);
  Totals totals{plain + left, double(report.job.bytes_sent) + left, 0};
  if (totals.plain > 0) totals.compressed_share = plain / totals.plain;
  return totals;
}

std::string algorithms_of(const Report& report) {
  std::string names;
  for (std::size_t i = 0; i < kAlgorithms; ++i) {
    if (report.own.algorithms[i].calls == 0) continue;
    const std::string name = algorithm_names()[i];
    // A hook is named with the path of its shared object.
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
  if (access(path.c_str(), W_OK) == 0) return "";
  if (errno != ENOENT) return std::strerror(errno);
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
  return access(directory.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

Status write_report(const Report& report, const std::string& target) {
  const std::string text = is_text(target) ? to_text(report) : to_json(report);
  if (is_stream(target)) return write_all(target == "stderr" ? STDERR_FILENO : STDOUT_FILENO, text);
  std::ofstream file(target, std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    return fail(Status::unsupported,
                "SLIMPI_REPORT=" + target + " cannot be written: " + std::strerror(errno));
  return Status::ok;
}

}  // namespace slimpi
