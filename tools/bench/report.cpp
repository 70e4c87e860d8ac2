// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "observe/report.h"
#include "options/option_types.h"
#include "tools/bench/candidate.h"
#include "tools/common/output.h"

namespace slimpi::bench {
namespace {

std::string fixed(double value, int decimals) {
  return fmt::format("{:.{}f}", value, decimals);
}

std::string microseconds(double seconds) {
  return fixed(seconds * 1e6, 1);
}

// Returns a share from 0 to 1 as a percentage.
std::string percent(const std::optional<double>& share) {
  return share ? fixed(100 * *share, 2) : "-";
}

std::string scientific(const std::optional<double>& value) {
  return value ? fmt::format("{:.2e}", *value) : "-";
}

std::string yes_or(const char* no, const std::optional<bool>& value) {
  return value ? (*value ? "yes" : no) : "-";
}

// Returns a line of the table. The second cell, the label, is aligned to the left, and its column
// has room for the longest label that the options can give.
std::string line(const Options& options, const std::vector<std::string>& cells) {
  static constexpr std::size_t kWidths[] = {10, 12, 5, 11, 11, 8, 8, 8, 12, 9, 9, 6, 6, 4, 12, 7};
  std::size_t label = kWidths[1];
  if (options.algorithms.empty())
    for (const AlgorithmWord& row : kAlgorithmWords)
      label = std::max(label, std::string_view(row.name).size() + 2);
  for (const std::string& name : options.algorithms) label = std::max(label, name.size() + 2);
  std::string text = fmt::format("{:>{}} {:{}}", cells[0], kWidths[0], cells[1], label);
  for (std::size_t i = 2; i < cells.size(); ++i)
    text += fmt::format(" {:>{}}", cells[i], kWidths[i]);
  return text + "\n";
}

}  // namespace

std::string table_head(const Options& options, const World& world) {
  std::string text = fmt::format(
      "# slimpi-bench {}: {} of floats, {} on {}, {}\n", SLIMPI_PACKAGE_VERSION,
      options.collective == Collective::allreduce ? "MPI_Allreduce" : "MPI_Reduce_scatter_block",
      number_of(std::uint64_t(world.ranks), "rank"), number_of(std::uint64_t(world.nodes), "node"),
      world.mpi);
  if (const std::uint64_t counted = config_of(options).ranks_per_node; counted != 0)
    text += fmt::format("# SLIMPI_RANKS_PER_NODE={}: slimpi counts {} as a node\n", counted,
                        number_of(counted, "rank"));
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
  std::string names =
      line(options, {"size", "algorithm", "taken", "median", "min", "algbw", "busbw", "speed-up",
                     "time / limit", "error", "vNMSE", "zeros", "signs", "same", "sent", "ratio"});
  std::string units = line(
      options, {"KiB", "", "", "us", "us", "GB/s", "GB/s", "", "", "", "", "", "", "", "KiB", ""});
  names[0] = units[0] = '#';
  return text + "#\n" + names + units;
}

std::string table_line(const Options& options, const Row& row, const Row& plain) {
  const auto sent = row.on_wire ? row.on_wire : row.sent;
  const bool counted = row.on_wire && plain.on_wire && *row.on_wire > 0;
  return line(options, {in_kib(row.bytes), row.label(), yes_or("no", row.compressed),
                        microseconds(row.median), microseconds(row.least),
                        fixed(row.algbw / 1e9, 3), fixed(row.busbw / 1e9, 3), fixed(row.speedup, 2),
                        row.limit ? fixed(row.median / *row.limit, 2) : "-", scientific(row.error),
                        scientific(row.vnmse), percent(row.zeros), percent(row.wrong_signs),
                        yes_or("NO", row.same), sent ? fixed(double(*sent) / 1024, 1) : "-",
                        counted ? fixed(double(*plain.on_wire) / double(*row.on_wire), 2) : "-"});
}

std::string unwritable(const Options& options) {
  const std::pair<const char*, const std::string&> files[] = {{"--json", options.json},
                                                              {"--plot", options.plot}};
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
