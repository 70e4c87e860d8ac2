// SPDX-License-Identifier: BSD-3-Clause
// Predictions of the cost model, for slimpi-bench --predict.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/cost.h"
#include "tools/bench/options.h"

namespace slimpi::bench {

using namespace cost;

// Returns the built-in constants, with the link and the latency that the options name.
Constants constants_of(const Options& options);

// Returns whether the link is faster than the one that the constants describe. Then the processor
// may decide the time, and its share was not measured.
bool beyond_measured(const Constants& constants);

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

}  // namespace slimpi::bench
