// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "base/estimate.h"

namespace slimpi {

namespace {

// 2^exponent bytes as people write them: "64 KiB".
std::string power_text(std::size_t exponent) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return fmt::format("{} {}", 1ull << exponent % 10,
                     units[std::min<std::size_t>(exponent / 10, 4)]);
}

std::string size_text(const EstimateRow& row) {
  if (row.empty) return "0 B";
  return power_text(row.size_class) + " to " + power_text(row.size_class + 1);
}

std::string ranks_text(const EstimateRow& row) {
  return row.ranks == 0 ? "-" : std::to_string(row.ranks);
}

std::string fate_text(const EstimateRow& row) {
  return row.taken() ? "compressed" : row_of(*row.reason).left;
}

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

// What the program did, one line a row.
std::string calls_table(const Estimate& estimate) {
  std::string text = fmt::format("  {:<19} {:>6} {:<10} {:<8} {:>8} {:>9} {:>7}  {}\n", "size",
                                 "ranks", "type", "op", "calls", "seconds", "share", "with slimpi");
  for (const EstimateRow& row : estimate.rows) {
    const double seconds = in_seconds(row.nanoseconds);
    text += fmt::format(
        "  {:<19} {:>6} {:<10} {:<8} {:>8} {:>9} {:>7}  {}\n", size_text(row), ranks_text(row),
        row.type, row.op, row.calls, row.blocking ? fmt::format("{:.3f}", seconds) : "-",
        row.blocking ? fmt::format("{:.1f}%", share(seconds, estimate.wall_seconds())) : "-",
        fate_text(row));
  }
  return text;
}

std::string line(const char* what, const std::string& now,
                 const std::array<std::string, kEstimatedWidths>& then) {
  std::string text = fmt::format("    {:<22} {:>11}", what, now);
  for (const std::string& value : then) text += fmt::format(" {:>11}", value);
  return text + "\n";
}

template <typename Values, typename Format>
std::array<std::string, kEstimatedWidths> texts_of(const Values& values, Format format) {
  std::array<std::string, kEstimatedWidths> texts;
  for (std::size_t i = 0; i < kEstimatedWidths; ++i) texts[i] = format(values[i]);
  return texts;
}

std::string seconds_text(double seconds) {
  return fmt::format("{:.3f}", seconds);
}

// What slimpi would make of a row.
std::string row_block(const EstimateRow& row) {
  std::string text = fmt::format("  {} on {} ranks, {} call{}\n", size_text(row), ranks_text(row),
                                 row.calls, row.calls == 1 ? "" : "s");
  text += line("bytes between nodes", bytes_text(row.bytes_now), texts_of(row.bytes, bytes_text));
  text += line("seconds", seconds_text(in_seconds(row.nanoseconds)),
               texts_of(row.seconds, seconds_text));
  const auto error = [&](double sum) {
    return row.samples == 0 ? "-" : fmt::format("{:.1e}", sum / double(row.samples));
  };
  return text + line("error of own values", "0", texts_of(row.error_sum, error));
}

std::string totals_block(const Estimate& estimate) {
  const EstimateTotals totals = totals_of(estimate);
  std::string text = fmt::format("  all {} call{}\n", totals.calls, totals.calls == 1 ? "" : "s");
  text += line("bytes between nodes", bytes_text(totals.bytes),
               texts_of(totals.bytes_then, bytes_text));
  text +=
      line("seconds", seconds_text(totals.seconds), texts_of(totals.seconds_then, seconds_text));
  const auto whole = [&](double seconds) {
    return seconds_text(estimate.wall_seconds() - totals.seconds + seconds);
  };
  return text +
         line("the program's seconds", whole(totals.seconds), texts_of(totals.seconds_then, whole));
}

// With about three digits, and without an exponent.
std::string rounded(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string network_line(const Estimate& estimate) {
  if (!estimate.network_measured)
    return "  network  not measured: no sum over all ranks would be compressed\n";
  return fmt::format(
      "  network  measured: {} us one way, {} Mbit/s between two nodes in both directions\n",
      rounded(estimate.latency * 1e6), rounded(8e-6 / estimate.link));
}

}  // namespace

bool on_one_machine(const Report& job, bool nodes_by_mpi, bool lab) {
  if (lab) return true;
  // MPI_Pcontrol(2) asks no other rank; then only the nodes tell.
  const bool known = job.ranks_counted == job.ranks && !job.hosts.empty();
  return known ? job.hosts.size() == 1 : job.nodes < 2 || !nodes_by_mpi;
}

EstimateTotals totals_of(const Estimate& estimate) {
  EstimateTotals totals;
  for (const EstimateRow& row : estimate.rows) {
    const double seconds = in_seconds(row.nanoseconds);
    totals.calls += row.calls;
    totals.seconds += seconds;
    totals.bytes += row.bytes_now;
    if (row.taken()) totals.taken += row.calls;
    for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
      totals.bytes_then[i] += row.taken() ? row.bytes[i] : row.bytes_now;
      totals.seconds_then[i] += row.taken() ? row.seconds[i] : seconds;
    }
  }
  return totals;
}

std::string to_text(const Estimate& estimate) {
  const EstimateTotals totals = totals_of(estimate);
  std::string text =
      fmt::format("slimpi {} estimate: {}, {} ({}); every call went to MPI\n", estimate.job.version,
                  number_of(std::uint64_t(estimate.job.ranks), "rank"),
                  number_of(std::uint64_t(estimate.job.nodes), "node"), estimate.job.mpi);
  text += fmt::format("  time     {:.3f} seconds, {:.3f} in allreduce: {:.1f}%\n",
                      estimate.wall_seconds(), totals.seconds,
                      share(totals.seconds, estimate.wall_seconds()));
  text += network_line(estimate) + "\n" + calls_table(estimate);
  if (estimate.merged != 0)
    text += fmt::format("  {} calls of many sizes were counted with the mean of their size class\n",
                        estimate.merged);
  if (totals.taken == 0)
    return text +
           "\n  slimpi would compress nothing; slimpi(7), TROUBLESHOOTING, explains why "
           "(on one machine: --ranks-per-node 1)\n";
  text += fmt::format("\n    {:<22} {:>11}", "would be compressed", "now");
  for (const int bits : kEstimatedBits) text += fmt::format(" {:>11}", number_of(bits, "bit"));
  text += "\n";
  for (const EstimateRow& row : estimate.rows)
    if (row.taken()) text += row_block(row);
  return text + totals_block(estimate);
}

}  // namespace slimpi
