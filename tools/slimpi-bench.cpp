// SPDX-License-Identifier: BSD-3-Clause
// slimpi-bench: measures MPI_Allreduce of floats, size by size, through slimpi and through plain
// MPI in the same run. For this slimpi is preloaded as into any other program; nothing inside it is
// called.
#include <fmt/core.h>

#include <cstdio>

#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/predict.h"
#include "tools/bench/report.h"
#include "tools/bench/world.h"
#include "tools/common/output.h"

namespace slimpi::bench {
namespace {

int run_prediction(const Options& options) {
  const Constants constants = constants_of(options);
  const std::vector<Forecast> all = forecasts(options, constants);
  if (const std::string why = unwritable(options); !why.empty())
    return fmt::print(stderr, "slimpi-bench: {}\n", why), 1;
  if (options.json != "-") tools::put(table(options, constants, all));
  return options.json.empty() || write_file(options.json, to_json(constants, all)) ? 0 : 1;
}

// Measures, and writes the outputs. Returns the exit status: 1 if an output could not be written or
// if the ranks' results differ, else 0.
int run(const Options& options, const World& world) {
  const bool speaks = world.rank == 0;
  const auto say = [&](const std::string& text) {
    if (!speaks) return;
    if (options.json == "-")
      fmt::print(stderr, "{}", text);
    else
      tools::put(text);
    std::fflush(stdout);  // a failure here is reported at the end
  };
  if (speaks && !world.preloaded)
    fmt::print(
        stderr,
        "slimpi-bench: libslimpi.so is not preloaded (slimpi-run does that): plain MPI only\n");
  Bench bench(options, world);
  if (!bench.has_memory()) {
    if (speaks)
      fmt::print(stderr,
                 "slimpi-bench: no memory for the largest size; --max gives a smaller one\n");
    return 1;
  }
  say(table_head(options, world));
  std::vector<Row> all;
  bool same = true;
  for (const std::uint64_t size : options.sizes) {
    const std::vector<Row> rows = bench.measure(size);
    for (const Row& row : rows) {
      same = same && (row.same != false || !guarantees_same_bytes(row.name));
      say(table_line(options, row, rows.front()));
    }
    all.insert(all.end(), rows.begin(), rows.end());
  }
  bool written = true;
  if (speaks && !options.json.empty())
    written = write_file(options.json, to_json(options, world, all));
  if (speaks && !options.plot.empty()) written = plot(options, world, all) && written;
  return same && sum(!written) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const Parsed parsed = parse(argc, argv);
  if (parsed.status == 0) {
    tools::put(parsed.text);
    return tools::finish_output("slimpi-bench", 0);
  }
  if (!parsed.status && parsed.options.predict)
    return tools::finish_output("slimpi-bench", run_prediction(parsed.options));
  if (const std::string why = load_mpi(); !why.empty()) {
    fmt::print(stderr, "slimpi-bench: {}\n", why);
    return 2;
  }
  MPI_Init(&argc, &argv);
  const World world = enter();
  int status = parsed.status.value_or(0);
  std::string refused = parsed.text;
  if (status == 0 && world.rank == 0) {
    const std::string why = unwritable(parsed.options);
    if (!why.empty()) refused = fmt::format("slimpi-bench: {}\n", why);
  }
  if (status == 0) status = int(largest(refused.empty() ? 0 : 1));
  if (status != 0 && world.rank == 0) fmt::print(stderr, "{}", refused);
  if (status == 0)
    status = parsed.options.digests ? print_digests(world) : run(parsed.options, world);
  MPI_Finalize();
  return tools::finish_output("slimpi-bench", status);
}

}  // namespace
}  // namespace slimpi::bench

int main(int argc, char** argv) {
  return slimpi::bench::main(argc, argv);
}
