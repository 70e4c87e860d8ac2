// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "slimpi.h"

namespace slimpi::bench {
namespace {

std::string version() {
  return fmt::format("{}.{}.{}", SLIMPI_VERSION_MAJOR, SLIMPI_VERSION_MINOR, SLIMPI_VERSION_PATCH);
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return us < 100    ? fmt::format("{:.2f}", us)
         : us < 1000 ? fmt::format("{:.1f}", us)
                     : fmt::format("{:.0f}", us);
}

std::string gigabytes(double rate) {
  return fmt::format("{:.3f}", rate / 1e9);
}

std::string bytes_in_words(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1e4 && unit < 4; ++unit) bytes /= 1e3;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.4g} {}", bytes, units[unit]);
}

template <typename T>
nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

std::string table_head(const Options& options, const World& world) {
  std::string text =
      fmt::format("# slimpi-bench {}: MPI_Allreduce of floats, {} rank{} on {} node{}, {}\n",
                  version(), world.ranks, world.ranks == 1 ? "" : "s", world.nodes,
                  world.nodes == 1 ? "" : "s", world.mpi);
  if (options.wire > 0)
    text += fmt::format("# a node's link: {:.6g} Mbit/s; limit: the least time that it allows\n",
                        options.wire / 1e6);
  text += "# times of the slowest rank; speed-up: of the median, over plain MPI in the same run\n";
  if (options.check)
    text += "# error: relative L2 against the sum in double; same: all ranks have the same bytes\n";
  text +=
      fmt::format("#\n#{:>9} {:18} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9} {:>5} {:>10} {:>6}",
                  "size", "algorithm", "median", "min", "algbw", "busbw", "speed-up", "x limit",
                  "error", "same", "sent", "fewer");
  if (!options.constants.empty()) text += fmt::format(" {:>10}", "predicted");
  text +=
      fmt::format("\n#{:>9} {:18} {:>10} {:>10} {:>8} {:>8}", "", "", "us", "us", "GB/s", "GB/s");
  if (!options.constants.empty()) text += fmt::format(" {:>69}", "us");
  return text + "\n";
}

std::string table_line(const Row& row, const Row& plain) {
  const auto sent = row.on_wire ? row.on_wire : row.sent;
  std::string label = row.label();
  if (row.compressed == false) label += " (passed)";
  std::string text = fmt::format(
      "{:>10} {:18} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9} {:>5} {:>10} {:>6}",
      written(row.bytes), label, microseconds(row.median), microseconds(row.least),
      gigabytes(row.algbw), gigabytes(row.busbw), fmt::format("{:.2f}", row.speedup),
      row.limit ? fmt::format("{:.2f}", row.median / *row.limit) : "-",
      row.error ? fmt::format("{:.2e}", *row.error) : "-",
      row.same ? (*row.same ? "yes" : "NO") : "-", sent ? bytes_in_words(double(*sent)) : "-",
      row.on_wire && plain.on_wire && *row.on_wire > 0
          ? fmt::format("{:.2f}", double(*plain.on_wire) / double(*row.on_wire))
          : "-");
  if (row.predicted) text += fmt::format(" {:>10}", microseconds(*row.predicted));
  return text + "\n";
}

nlohmann::ordered_json to_json(const Options& options, const World& world,
                               const std::vector<Row>& rows) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    results.push_back(
        {{"size", row.bytes},
         {"count", row.bytes / sizeof(float)},
         {"algorithm", row.name},
         {"bits", row.bits == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(row.bits)},
         {"iterations", row.iterations},
         {"median_seconds", row.median},
         {"min_seconds", row.least},
         {"algbw", row.algbw},
         {"busbw", row.busbw},
         {"speedup", row.speedup},
         {"limit_seconds", value_or_null(row.limit)},
         {"rel_l2_error", value_or_null(row.error)},
         {"same_bytes", value_or_null(row.same)},
         {"compressed", value_or_null(row.compressed)},
         {"bytes_sent", value_or_null(row.sent)},
         {"interface_bytes", value_or_null(row.on_wire)},
         {"predicted_seconds", value_or_null(row.predicted)}});
  }
  return {{"slimpi", version()},
          {"mpi", world.mpi},
          {"ranks", world.ranks},
          {"nodes", world.nodes},
          {"preloaded", world.preloaded},
          {"in_place", options.in_place},
          {"warmup", options.warmup},
          {"wire_bits_per_second",
           options.wire > 0 ? nlohmann::ordered_json(options.wire) : nlohmann::ordered_json()},
          {"results", results}};
}

bool write_file(const std::string& path, const std::string& text) {
  if (path == "-") return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return true;
  fmt::print(stderr, "slimpi-bench: {} cannot be written\n", path);
  return false;
}

}  // namespace slimpi::bench
