// SPDX-License-Identifier: BSD-3-Clause
// slimpi-bench: measures MPI_Allreduce of floats, size by size, through slimpi and through plain
// MPI in the same run. It uses none of slimpi's internals for that: slimpi is preloaded, as into
// any program.
#include <fmt/core.h>

#include <cstdio>
#include <type_traits>

#include "tools/bench/calibrate.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/predict.h"
#include "tools/bench/report.h"
#include "tools/bench/world.h"
#include "tools/common/output.h"

namespace slimpi::bench {
namespace {

// Reads the constants that --constants names. Prints a line and returns false if they can't be
// used.
bool constants_of(const Options& options, Constants& constants) {
  const std::string wrong = read_constants(options, constants);
  if (!wrong.empty()) fmt::print(stderr, "slimpi-bench: {}\n", wrong);
  return wrong.empty();
}

int run_prediction(const Options& options) {
  Constants constants;
  if (!constants_of(options, constants)) return 2;
  const std::vector<Forecast> all = forecasts(options, constants);
  if (const std::string why = unwritable(options); !why.empty())
    return fmt::print(stderr, "slimpi-bench: {}\n", why), 1;
  if (options.json != "-") tools::put(table(options, constants, all));
  return options.json.empty() || write_file(options.json, to_json(constants, all)) ? 0 : 1;
}

int run_calibration(const Options& options, const World& world, const Contact& contact) {
  if (world.nodes < 2) {
    if (world.rank == 0)
      fmt::print(stderr,
                 "slimpi-bench: --calibrate needs two nodes or more: {}; slimpi-lab makes some\n",
                 calibration_command(options.calibrate));
    return 2;
  }
  const Calibration found = calibrate(world, contact);
  bool written = true;
  if (world.rank == 0) {
    written = write_file(options.calibrate, to_json(found.constants));
    if (written && options.calibrate == "-")
      fmt::print(stderr, "{}", summary(options, found));
    else if (written)
      tools::put(summary(options, found));
  }
  return sum(!written) == 0 ? 0 : 1;
}

// Returns 1 if an output that was asked for could not be written, or if the ranks' results differ;
// else 0.
int run(const Options& options, const World& world) {
  const bool speaks = world.rank == 0;
  const auto say = [&](const std::string& text) {
    if (!speaks) return;
    if (options.json == "-")
      fmt::print(stderr, "{}", text);
    else
      tools::put(text);
    std::fflush(stdout);  // what fails here is reported at the end
  };
  if (speaks && !world.preloaded)
    fmt::print(
        stderr,
        "slimpi-bench: libslimpi.so is not preloaded (slimpi-run does that): plain MPI only\n");
  Constants constants;
  const bool predicts = !options.constants.empty();
  // Only rank 0 reads the file, because it need not be on every host.
  if (predicts && sum(speaks && !constants_of(options, constants)) != 0) return 2;
  static_assert(std::is_trivially_copyable_v<Constants>);
  PMPI_Bcast(&constants, int(sizeof constants), MPI_BYTE, 0, MPI_COMM_WORLD);
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
    std::vector<Row> rows = bench.measure(size);
    if (predicts) add_predictions(world, constants, rows);
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
  const bool calibrates = !parsed.status && !parsed.options.calibrate.empty();
  const Contact contact = calibrates ? first_contact() : Contact{};
  World world = enter();
  int status = parsed.status.value_or(0);
  std::string refused = parsed.text;
  if (status == 0 && world.rank == 0) {
    const std::string why = unwritable(parsed.options);
    if (!why.empty()) refused = fmt::format("slimpi-bench: {}\n", why);
  }
  if (status == 0) status = int(largest(refused.empty() ? 0 : 1));
  if (status != 0 && world.rank == 0) fmt::print(stderr, "{}", refused);
  if (calibrates && status == 0)
    status = run_calibration(parsed.options, world, contact);
  else if (status == 0 && parsed.options.digests)
    status = print_digests(world);
  else if (status == 0)
    status = run(parsed.options, world);
  leave(world);
  MPI_Finalize();
  return tools::finish_output("slimpi-bench", status);
}

}  // namespace
}  // namespace slimpi::bench

int main(int argc, char** argv) {
  return slimpi::bench::main(argc, argv);
}
