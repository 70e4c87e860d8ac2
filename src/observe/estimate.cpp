// SPDX-License-Identifier: BSD-3-Clause
#include "observe/estimate.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace slimpi {

namespace {

// Returns 2^exponent bytes as a text, such as "64 KiB".
std::string power_text(std::size_t exponent) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return fmt::format("{} {}", 1ull << exponent % 10,
                     units[std::min<std::size_t>(exponent / 10, 4)]);
}

std::string size_text(const CountedCalls& calls) {
  if (calls.empty) return "0 B";
  return power_text(calls.size_class) + " to " + power_text(calls.size_class + 1);
}

// Returns the text of the last column, "with slimpi". If slimpi would take the calls with their
// type in SLIMPI_TYPES, the text suggests the option --types.
std::string fate_text(const Estimate& estimate, const CountedCalls& calls) {
  if (!calls.reason) return "compressed";
  const std::string text = std::string("MPI: ") + to_string(*calls.reason);
  if (calls.reason != BypassReason::datatype || calls.values == 0 ||
      calls.bytes < calls.calls * estimate.min_size)
    return text;
  return text + "; --types float," + calls.type + " takes it";
}

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::string calls_table(const Estimate& estimate) {
  std::string text =
      fmt::format("  {:<19} {:>6} {:<14} {:<8} {:<5} {:>7} {:>8} {:>7}  {}\n", "size", "ranks",
                  "function", "type", "op", "calls", "seconds", "share", "with slimpi");
  for (const CountedCalls& calls : estimate.counted) {
    const double seconds = in_seconds(calls.nanoseconds);
    text += fmt::format(
        "  {:<19} {:>6} {:<14} {:<8} {:<5} {:>7} {:>8} {:>7}  {}\n", size_text(calls), calls.ranks,
        row_of(calls.collective).name, calls.type, calls.op, calls.calls,
        calls.blocking ? fmt::format("{:.3f}", seconds) : "-",
        calls.blocking ? fmt::format("{:.1f}%", share(seconds, estimate.job.wall_seconds)) : "-",
        fate_text(estimate, calls));
  }
  return text;
}

// Bytes between nodes: with plain MPI, and with each number of bits.
using Bytes = std::array<double, 1 + std::size(kEstimatedBits)>;

Bytes bytes_of(const Estimate& estimate, const CountedCalls& calls) {
  Bytes bytes{calls.plain_bytes};
  for (std::size_t i = 1; i < bytes.size(); ++i)
    bytes[i] = bytes_at(estimate, calls, kEstimatedBits[i - 1]);
  return bytes;
}

template <typename Text>
std::string line(const std::string& what, const Bytes& bytes, Text text) {
  std::string made = fmt::format("  {:<41}", what);
  for (const double each : bytes) made += fmt::format(" {:>11}", text(each));
  return made + "\n";
}

std::string bytes_table(const Estimate& estimate) {
  std::string text = fmt::format("  {:<41} {:>11}", "bytes between nodes", "plain MPI");
  for (const int bits : kEstimatedBits) text += fmt::format(" {:>11}", number_of(bits, "bit"));
  text += "\n";
  Bytes all{};
  for (const CountedCalls& calls : estimate.counted) {
    const Bytes bytes = bytes_of(estimate, calls);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += bytes[i];
    if (calls.reason) continue;
    text += line(fmt::format("{} on {} ranks, {}", size_text(calls), calls.ranks,
                             number_of(calls.calls, "call")),
                 bytes, bytes_text);
  }
  return text + line("all calls", all, bytes_text) +
         line("compression ratio", all, [&](double bytes) {
           return bytes > 0 ? fmt::format("{:.2f}", all[0] / bytes) : std::string("-");
         });
}

}  // namespace

double bytes_at(const Estimate& estimate, const CountedCalls& calls, int bits) {
  if (calls.reason || calls.bytes == 0) return calls.plain_bytes;
  const double scales = estimate.bucket == 0 ? 0 : 64.0 / double(estimate.bucket);
  return calls.plain_bytes * double(calls.values) * (bits + scales) / (8.0 * double(calls.bytes));
}

std::optional<BypassReason> dominant_reason(const Estimate& estimate) {
  // The bytes decide, because the time of nonblocking calls is unknown. One byte is added per call,
  // so that calls without bytes count, too.
  std::array<std::uint64_t, kBypassReasons> bytes{};
  std::uint64_t compressed = 0;
  for (const CountedCalls& calls : estimate.counted)
    (calls.reason ? bytes[std::size_t(*calls.reason)] : compressed) += calls.bytes + calls.calls;
  const auto most = std::max_element(bytes.begin(), bytes.end());
  if (*most <= compressed) return std::nullopt;
  return BypassReason(most - bytes.begin());
}

std::string to_text(const Estimate& estimate) {
  const Report& job = estimate.job;
  double seconds = 0;
  bool compresses = false;
  for (const CountedCalls& calls : estimate.counted) {
    seconds += in_seconds(calls.nanoseconds);
    compresses |= !calls.reason;
  }
  std::string text = fmt::format("slimpi {} estimate: {}, {} ({}); every call went to MPI\n",
                                 job.version, number_of(std::uint64_t(job.ranks), "rank"),
                                 number_of(std::uint64_t(job.nodes), "node"), job.mpi);
  text += fmt::format("  time     {:.3f} seconds, {:.3f} in these calls: {:.1f}%\n\n",
                      job.wall_seconds, seconds, share(seconds, job.wall_seconds));
  text += calls_table(estimate) + "\n";
  if (const std::optional<BypassReason> reason = dominant_reason(estimate))
    text += fmt::format("  advice: {}\n\n", advice_of(*reason, job.command));
  return text + (compresses ? bytes_table(estimate) : "  slimpi would compress nothing\n");
}

}  // namespace slimpi
