// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/predict.h"

#include <fmt/core.h>

namespace slimpi::bench {
namespace {

Forecast forecast(Schedule schedule, const Layout& layout, double bytes, int bits,
                  const Constants& c) {
  const Schedule plain = cheapest(true, bytes, bits, layout, c);
  return {layout,
          bytes,
          is_plain(schedule) ? 0 : bits,
          schedule,
          predict(schedule, bytes, bits, layout, c),
          predict(plain, bytes, bits, layout, c).seconds,
          schedule == used(bytes, bits, layout)};
}

std::string number(double value) {
  return fmt::format("{:.0f}", value);
}

// Returns the value with about four digits and without an exponent.
std::string rounded(double value) {
  if (value == 0) return "0";
  const int decimals = value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

Constants constants_of(const Options& options) {
  Constants constants;
  if (options.latency > 0) constants.latency = options.latency;
  if (options.wire > 0) constants.link = 8 / (options.wire * kPayload);
  return constants;
}

bool beyond_measured(const Constants& constants) {
  return constants.link < 0.95 * Constants{}.link;
}

std::vector<Forecast> forecasts(const Options& options, const Constants& c) {
  std::vector<double> nodes{2, 4, 8, 16, 64, 256, 1000, 4000, 10'000, 100'000};
  if (options.nodes > 0) nodes = {double(options.nodes)};
  std::vector<int> widths(options.bits.begin(), options.bits.end());
  if (widths.empty()) widths = {8, 4, 2};
  std::vector<Forecast> all;
  for (const std::uint64_t size : options.sizes) {
    const auto bytes = double(size);
    for (const double count : nodes) {
      const Layout layout{count, double(options.ranks_per_node), double(options.cores)};
      for (const Schedule schedule : kSchedules)
        if (is_plain(schedule) &&
            (options.nodes > 0 || schedule == cheapest(true, bytes, 8, layout, c)))
          all.push_back(forecast(schedule, layout, bytes, 8, c));
      for (const int bits : widths)
        for (const Schedule schedule : kSchedules)
          if (!is_plain(schedule) && (options.nodes > 0 || schedule == used(bytes, bits, layout)))
            all.push_back(forecast(schedule, layout, bytes, bits, c));
    }
  }
  return all;
}

std::string table(const Options& options, const Constants& c, const std::vector<Forecast>& all) {
  std::string text = fmt::format(
      "# slimpi-bench: predicted times of MPI_Allreduce by built-in constants\n"
      "# link {:.6g} Mbit/s of payload, latency {:.4g} us, {:.4g} us a message, {} core{} a node\n"
      "# bottleneck: the largest part of the time; memory: of a rank, for messages\n"
      "# *: the schedule that slimpi uses, which it chooses without much memory\n#\n",
      8e-6 / c.link, c.latency * 1e6, c.overhead * 1e6,
      options.cores > 0 ? std::to_string(options.cores) : "enough", options.cores == 1 ? "" : "s");
  if (beyond_measured(c))
    text += fmt::format(
        "# warning: the constants are for links up to {:.6g} Mbit/s of payload; on the faster "
        "link\n"
        "# of --wire the processor may decide\n#\n",
        8e-6 / Constants{}.link);
  static constexpr char kHead[] =
      "#{:>7} {:>7} {:>8} {:14} {:>4} {:>11} {:>8} {:>10} {:>11} {:>7} {:>9}\n";
  text += fmt::format(kHead, "nodes", "ranks", "size", "schedule", "bits", "time", "speed-up",
                      "bottleneck", "messages", "peers", "memory");
  text += fmt::format(kHead, "", "", "KiB", "", "", "ms", "", "", "a rank", "a rank", "MiB");
  for (const Forecast& f : all) {
    text += fmt::format("{:>8} {:>7} {:>8} {:14} {:>4} {:>11} {:>8.2f} {:>10} {:>11} {:>7} {:>9}\n",
                        f.layout.nodes, number(f.layout.nodes * f.layout.ranks_per_node),
                        in_kib(std::uint64_t(f.bytes)),
                        to_string(f.schedule) + std::string(f.used ? " *" : ""),
                        f.bits == 0 ? "-" : std::to_string(f.bits), rounded(f.cost.seconds * 1e3),
                        f.plain_seconds / f.cost.seconds, held_by(f.cost), number(f.cost.messages),
                        number(f.cost.peers), rounded(f.cost.memory / (1 << 20)));
  }
  return text;
}

}  // namespace slimpi::bench
