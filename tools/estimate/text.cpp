// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/core.h>

#include <algorithm>

#include "tools/estimate/estimate.h"

namespace slimpi::tools {

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
  if (row.with_types) return "datatype: --types float," + row.type + " compresses";
  return row.taken() ? "compressed" : row_of(*row.reason).text;
}

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

// What the program did, one line a row.
std::string calls_table(const Prediction& prediction) {
  std::string text = fmt::format("  {:<19} {:>6} {:<10} {:<8} {:>8} {:>9} {:>7}  {}\n", "size",
                                 "ranks", "type", "op", "calls", "seconds", "share", "with slimpi");
  for (const EstimateRow& row : prediction.rows) {
    const double seconds = in_seconds(row.nanoseconds);
    text += fmt::format(
        "  {:<19} {:>6} {:<10} {:<8} {:>8} {:>9} {:>7}  {}\n", size_text(row), ranks_text(row),
        row.type, row.op, row.calls, row.blocking ? fmt::format("{:.3f}", seconds) : "-",
        row.blocking ? fmt::format("{:.1f}%", share(seconds, prediction.counted.job.wall_seconds))
                     : "-",
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

// Predicted seconds, or dashes where they are not known. `more`: seconds that count in each.
std::string seconds_line(const char* what, const Prediction& prediction, double plain,
                         const ByEstimatedBits& then, double more = 0) {
  const auto text = [&](double seconds) {
    return prediction.cluster.wire == 0 ? "-" : fmt::format("{:.3f}", seconds + more);
  };
  return line(what, text(plain), texts_of(then, text));
}

// What slimpi would make of a row.
std::string row_block(const Prediction& prediction, const EstimateRow& row) {
  std::string text = fmt::format("  {} on {} ranks, {}{}\n", size_text(row), ranks_text(row),
                                 number_of(row.calls, "call"),
                                 row.with_types ? ", with --types float," + row.type : "");
  if (row.unheld != 0)
    text += fmt::format("    {} with values that float32 cannot hold: such calls stay with MPI\n",
                        number_of(row.unheld, "sample"));
  text += line("bytes between nodes", bytes_text(row.bytes_now), texts_of(row.bytes, bytes_text));
  text += seconds_line("seconds, predicted", prediction, row.plain_seconds, row.seconds);
  const auto error = [&](double sum) {
    return row.samples == 0 ? "-" : fmt::format("{:.1e}", sum / double(row.samples));
  };
  return text + line("error of own values", "0", texts_of(row.error_sum, error));
}

std::string totals_block(const Prediction& prediction) {
  const EstimateTotals totals = totals_of(prediction);
  std::string text = fmt::format("  all {}\n", number_of(totals.calls, "call"));
  text += line("bytes between nodes", bytes_text(totals.bytes),
               texts_of(totals.bytes_then, bytes_text));
  text += seconds_line("seconds, predicted", prediction, totals.plain_seconds, totals.seconds_then);
  return text + seconds_line("the program's seconds", prediction, totals.plain_seconds,
                             totals.seconds_then,
                             prediction.counted.job.wall_seconds - totals.seconds);
}

std::string network_line(const Prediction& prediction) {
  std::string text = "  for      ";
  text += prediction.cluster.nodes == 0
              ? "the nodes of this job"
              : fmt::format("{} nodes of {}", prediction.cluster.nodes,
                            number_of(std::uint64_t(prediction.counted.ranks_per_node), "rank"));
  if (prediction.cluster.wire == 0)
    return text + "; times are not predicted: --wire gives the rate of a node's link\n";
  return text + fmt::format(", links of {:.6g} Mbit/s (--wire)\n", prediction.cluster.wire / 1e6);
}

}  // namespace

EstimateTotals totals_of(const Prediction& prediction) {
  EstimateTotals totals;
  for (const EstimateRow& row : prediction.rows) {
    const double seconds = in_seconds(row.nanoseconds);
    totals.calls += row.calls;
    totals.seconds += seconds;
    totals.bytes += row.bytes_now;
    totals.plain_seconds += row.taken() ? row.plain_seconds : seconds;
    if (row.taken()) totals.taken += row.calls;
    for (std::size_t i = 0; i < kEstimatedWidths; ++i) {
      totals.bytes_then[i] += row.taken() ? row.bytes[i] : row.bytes_now;
      totals.seconds_then[i] += row.taken() ? row.seconds[i] : seconds;
    }
  }
  return totals;
}

std::optional<BypassReason> dominant_reason(const Prediction& prediction) {
  // By bytes: the time of nonblocking calls is not known. Calls of no bytes count as one.
  std::array<std::uint64_t, kBypassReasons> bytes{};
  std::uint64_t compressed = 0;
  for (const EstimateRow& row : prediction.rows)
    (row.reason ? bytes[std::size_t(*row.reason)] : compressed) += row.bytes_in + row.calls;
  const auto most = std::max_element(bytes.begin(), bytes.end());
  if (*most <= compressed) return std::nullopt;
  return BypassReason(most - bytes.begin());
}

std::string to_text(const Prediction& prediction) {
  const EstimateTotals totals = totals_of(prediction);
  std::string text = fmt::format(
      "slimpi {} estimate: {}, {} ({}); every call went to MPI\n", prediction.counted.job.version,
      number_of(std::uint64_t(prediction.counted.job.ranks), "rank"),
      number_of(std::uint64_t(prediction.counted.job.nodes), "node"), prediction.counted.job.mpi);
  text += fmt::format("  time     {:.3f} seconds, {:.3f} in allreduce: {:.1f}%\n",
                      prediction.counted.job.wall_seconds, totals.seconds,
                      share(totals.seconds, prediction.counted.job.wall_seconds));
  text += network_line(prediction) + "\n" + calls_table(prediction);
  if (prediction.counted.merged != 0)
    text += fmt::format("  {} calls of many sizes were counted with the mean of their size class\n",
                        prediction.counted.merged);
  const std::optional<BypassReason> reason = dominant_reason(prediction);
  if (reason)
    text += fmt::format("\n  advice: {}\n", advice_of(*reason, prediction.counted.job.command));
  const bool predicts = std::any_of(prediction.rows.begin(), prediction.rows.end(),
                                    [](const auto& row) { return row.taken() || row.with_types; });
  if (!predicts) return text + "\n  slimpi would compress nothing\n";
  text += fmt::format("\n    {:<22} {:>11}", "would be compressed", "plain MPI");
  for (const int bits : kEstimatedBits) text += fmt::format(" {:>11}", number_of(bits, "bit"));
  text += "\n";
  for (const EstimateRow& row : prediction.rows)
    if (row.taken() || row.with_types) text += row_block(prediction, row);
  return text + totals_block(prediction);
}

}  // namespace slimpi::tools
