// SPDX-License-Identifier: BSD-3-Clause
// The constants of the cost model, and tables of its predictions.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/cost.h"
#include "tools/bench/measure.h"

namespace slimpi::bench {

using namespace cost;

std::string to_json(const Constants& constants);
// Reads a file of constants. Returns "", or a text that says what is wrong with the file.
std::string read_json(const std::string& path, Constants& constants);

// Reads the constants of the file options.constants; without a file, takes the built-in constants.
// measured_link becomes their link. Then replaces the link and the latency by those that the
// options name. Returns "", or a text that says what is wrong with the file.
std::string read_constants(const Options& options, Constants& constants);

// One predicted call: the best plain schedule, or one of slimpi's.
struct Forecast {
  Layout layout;
  double bytes = 0;
  int bits = 0;  // 0: plain
  Schedule schedule{};
  Cost cost;
  double plain_seconds = 0;  // seconds of the best plain schedule
  bool used = false;         // slimpi's choice
};

// Predicts calls. With options.nodes: all schedules, for a job of that many nodes. Otherwise: the
// best plain schedule and the schedule that slimpi uses, for 2 to 100,000 nodes.
std::vector<Forecast> forecasts(const Options& options, const Constants& constants);

std::string table(const Options& options, const Constants& constants,
                  const std::vector<Forecast>& all);
std::string to_json(const Constants& constants, const std::vector<Forecast>& all);

// Sets Row::predicted of the rows that were measured in this job.
void add_predictions(const World& world, const Constants& constants, std::vector<Row>& rows);

}  // namespace slimpi::bench
