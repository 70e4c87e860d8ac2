// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "observe/report.h"
#include "options/option_types.h"
#include "slimpi.h"
#include "tools/bench/candidate.h"
#include "tools/common/output.h"

namespace slimpi::bench {
namespace {

std::string version() {
  return fmt::format("{}.{}.{}", SLIMPI_VERSION_MAJOR, SLIMPI_VERSION_MINOR, SLIMPI_VERSION_PATCH);
}

std::string microseconds(double seconds) {
  return fmt::format("{:.1f}", seconds * 1e6);
}

std::string gigabytes(double rate) {
  return fmt::format("{:.3f}", rate / 1e9);
}

std::string kibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f}", double(bytes) / 1024);
}

// A share from 0 to 1.
std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}", 100 * *share) : "-";
}

// Of the column of labels: the longest that the options can give.
std::size_t label_width(const Options& options) {
  std::size_t width = 12;
  if (options.algorithms.empty())
    for (const AlgorithmWord& row : kAlgorithmWords)
      width = std::max(width, std::string_view(row.name).size() + 2);
  for (const std::string& name : options.algorithms) width = std::max(width, name.size() + 2);
  return width;
}

}  // namespace

std::string table_head(const Options& options, const World& world) {
  std::string text = fmt::format(
      "# slimpi-bench {}: {} of floats, {} rank{} on {} node{}, {}\n", version(),
      options.collective == Collective::allreduce ? "MPI_Allreduce" : "MPI_Reduce_scatter_block",
      world.ranks, world.ranks == 1 ? "" : "s", world.nodes, world.nodes == 1 ? "" : "s",
      world.mpi);
  if (const std::uint64_t counted = config_of(options).ranks_per_node; counted != 0)
    text += fmt::format("# SLIMPI_RANKS_PER_NODE={}: slimpi counts {} rank{} as a node\n", counted,
                        counted, counted == 1 ? "" : "s");
  if (config_of(options).rules)
    text += "# SLIMPI_RULES is set: a rule may give a size another algorithm than its row says\n";
  if (options.wire > 0)
    text += fmt::format(
        "# a node's link: {:.6g} Mbit/s; limit: the least time in which it can carry the bytes\n",
        options.wire / 1e6);
  text += "# times of the slowest rank; speed-up: of the median, over plain MPI in the same run\n";
  text += "# taken: slimpi did the call itself; otherwise MPI did\n";
  if (options.check)
    text +=
        "# error: relative L2 against the sum in double; vNMSE: its square; zeros, signs: % of "
        "values\n"
        "# that are not 0 and became 0, or changed sign; same: all ranks have the same bytes\n";
  if (!options.interface.empty())
    text += "# ratio: compression ratio, the bytes of plain MPI on the links divided by these\n";
  const std::size_t width = label_width(options);
  const bool predicts = !options.constants.empty();
  text += fmt::format(
      "#\n#{:>9} {:{}} {:>5} {:>11} {:>11} {:>8} {:>8} {:>8} {:>12} {:>9} {:>9} {:>6} {:>6} {:>4} "
      "{:>12} {:>7}{}\n",
      "size", "algorithm", width, "taken", "median", "min", "algbw", "busbw", "speed-up",
      "time / limit", "error", "vNMSE", "zeros", "signs", "same", "sent", "ratio",
      predicts ? fmt::format(" {:>11}", "predicted") : "");
  text +=
      fmt::format("#{:>9} {:{}} {:>5} {:>11} {:>11} {:>8} {:>8} {:>73}{}\n", "KiB", "", width, "",
                  "us", "us", "GB/s", "GB/s", "KiB", predicts ? fmt::format(" {:>19}", "us") : "");
  return text;
}

std::string table_line(const Options& options, const Row& row, const Row& plain) {
  const auto sent = row.on_wire ? row.on_wire : row.sent;
  std::string text = fmt::format(
      "{:>10} {:{}} {:>5} {:>11} {:>11} {:>8} {:>8} {:>8} {:>12} {:>9} {:>9} {:>6} {:>6} {:>4} "
      "{:>12} {:>7}",
      in_kib(row.bytes), row.label(), label_width(options),
      row.compressed ? (*row.compressed ? "yes" : "no") : "-", microseconds(row.median),
      microseconds(row.least), gigabytes(row.algbw), gigabytes(row.busbw),
      fmt::format("{:.2f}", row.speedup),
      row.limit ? fmt::format("{:.2f}", row.median / *row.limit) : "-",
      row.error ? fmt::format("{:.2e}", *row.error) : "-",
      row.vnmse ? fmt::format("{:.2e}", *row.vnmse) : "-", percent(row.zeros),
      percent(row.wrong_signs), row.same ? (*row.same ? "yes" : "NO") : "-",
      sent ? kibibytes(*sent) : "-",
      row.on_wire && plain.on_wire && *row.on_wire > 0
          ? fmt::format("{:.2f}", double(*plain.on_wire) / double(*row.on_wire))
          : "-");
  if (!options.constants.empty())
    text += fmt::format(" {:>11}", row.predicted ? microseconds(*row.predicted) : "-");
  return text + "\n";
}

std::string unwritable(const Options& options) {
  const std::pair<const char*, const std::string&> files[] = {
      {"--json", options.json}, {"--plot", options.plot}, {"--calibrate", options.calibrate}};
  for (const auto& [name, path] : files) {
    if (path.empty() || path == "-") continue;
    if (const std::string why = why_not_writable(path); !why.empty())
      return fmt::format("{} {} cannot be written: {}", name, path, why);
  }
  return "";
}

bool write_file(const std::string& path, const std::string& text) {
  if (path == "-") return tools::put(text), true;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return true;
  fmt::print(stderr, "slimpi-bench: {} cannot be written\n", path);
  return false;
}

}  // namespace slimpi::bench
