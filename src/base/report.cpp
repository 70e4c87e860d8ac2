// SPDX-License-Identifier: BSD-3-Clause
#include "base/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace slimpi {

namespace {

double seconds(std::uint64_t nanoseconds) {
  return double(nanoseconds) * 1e-9;
}

// The codec that SLIMPI_MAX_ERROR chose: "1" to "8" bits, "fp16", "float32".
std::string codec_name(std::size_t codec) {
  return codec < 8 ? std::to_string(codec + 1) : codec == 8 ? "fp16" : "float32";
}

std::string bytes_text(std::uint64_t bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, units[unit]);
}

}  // namespace

std::string to_json(const Report& report) {
  using Json = nlohmann::ordered_json;
  Json passed, time;
  for (std::size_t i = 0; i < kBypassReasons; ++i)
    passed[to_string(BypassReason(i))] = report.own.passed[i];
  time["total"] = seconds(report.own.nanoseconds);
  for (std::size_t i = 0; i < kStages; ++i)
    time[to_string(Stage(i))] = seconds(report.own.stage_nanoseconds[i]);
  Json json;
  json["slimpi"] = report.version;
  json["mpi"] = report.mpi;
  json["ranks"] = report.ranks;
  json["nodes"] = report.nodes;
  json["algorithm"] = report.algorithm;
  json["calls"] = {
      {"total", report.own.calls}, {"compressed", report.own.compressed}, {"passed", passed}};
  json["bytes"] = {{"in", report.job.bytes_in},
                   {"sent", report.job.bytes_sent},
                   {"plain", report.job.bytes_plain}};
  json["seconds"] = time;
  json["buffers"] = {{"host", report.own.host_buffers},
                     {"device", report.own.device_buffers},
                     {"staged", report.own.staged_calls}};
  json["error"] = {{"checked", report.own.checked},
                   {"mean_rel_l2", report.mean_error},
                   {"max_rel_l2", report.max_error}};
  json["memory"] = {{"state", report.own.state_bytes},
                    {"scratch", report.most_scratch},
                    {"segments", report.most_segments},
                    {"segment_bytes", report.most_segment_bytes}};
  json["state_dropped"] = report.own.state_dropped;
  for (std::size_t i = 0; i < kChosenCodecs; ++i)
    json["codecs"][codec_name(i)] = report.own.codecs[i];
  json["repeated"] = report.own.repeated;
  json["overflowed"] = report.job.overflowed;
  json["ranks_counted"] = report.ranks_counted;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const Report& report) {
  std::string text = fmt::format("slimpi {}: {} on {} ranks, {} nodes ({})\n", report.version,
                                 report.algorithm, report.ranks, report.nodes, report.mpi);
  text += fmt::format("  calls    {} allreduce, {} compressed", report.own.calls,
                      report.own.compressed);
  std::string reasons;
  for (std::size_t i = 0; i < kBypassReasons; ++i)
    if (report.own.passed[i] != 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", report.own.passed[i],
                             to_string(BypassReason(i)));
  text += reasons.empty() ? "\n" : fmt::format("; left to MPI: {}\n", reasons);
  text += fmt::format("  bytes    {} between nodes, plain {}", bytes_text(report.job.bytes_sent),
                      bytes_text(report.job.bytes_plain));
  if (report.job.bytes_sent != 0)
    text += fmt::format(": {:.2f} times fewer",
                        double(report.job.bytes_plain) / double(report.job.bytes_sent));
  text += fmt::format("\n  seconds  {:.3f}", seconds(report.own.nanoseconds));
  for (std::size_t i = 0; i < kStages; ++i)
    text +=
        fmt::format(", {} {:.3f}", to_string(Stage(i)), seconds(report.own.stage_nanoseconds[i]));
  text += "\n";
  if (report.own.checked != 0)
    text += fmt::format("  error    relative L2 mean {:.2e}, max {:.2e} in {} calls\n",
                        report.mean_error, report.max_error, report.own.checked);
  std::string codecs;
  for (std::size_t i = 0; i < kChosenCodecs; ++i)
    if (report.own.codecs[i] != 0)
      codecs += fmt::format("{}{} in {}{}", codecs.empty() ? "" : ", ", report.own.codecs[i],
                            codec_name(i), i < 8 ? " bits" : "");
  if (!codecs.empty())
    text += fmt::format("  codecs  {}; {} exchanges repeated\n", codecs, report.own.repeated);
  if (report.job.overflowed != 0)
    text += fmt::format("  overflow {} values became infinite in fp16 or bf16\n",
                        report.job.overflowed);
  text += fmt::format("  memory   {} for messages, {} for state, {} in {} shared segments\n",
                      bytes_text(report.most_scratch), bytes_text(report.own.state_bytes),
                      bytes_text(report.most_segment_bytes), report.most_segments);
  return text;
}

std::string why_not_writable(const std::string& path) {
  if (access(path.c_str(), W_OK) == 0) return "";
  if (errno != ENOENT) return std::strerror(errno);
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
  return access(directory.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

Status write_report(const Report& report, const std::string& target) {
  if (target == "stderr") {
    const std::string text = to_text(report);
    if (write(STDERR_FILENO, text.data(), text.size()) < 0)
      return fail(Status::unsupported, std::string("the report: ") + std::strerror(errno));
    return Status::ok;
  }
  std::ofstream file(target, std::ios::trunc);
  file << to_json(report);
  file.close();
  if (!file)
    return fail(Status::unsupported,
                "SLIMPI_REPORT=" + target + " cannot be written: " + std::strerror(errno));
  return Status::ok;
}

}  // namespace slimpi
