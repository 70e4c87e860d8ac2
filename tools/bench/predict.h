// SPDX-License-Identifier: BSD-3-Clause
// Predictions of the cost model, for slimpi-bench --predict.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/cost.h"
#include "tools/bench/options.h"

namespace slimpi::bench {

using namespace cost;

// Returns the built-in constants of the cost model, except that the link and the latency are those
// of the options, if given.
Constants constants_of(const Options& options);

// Returns whether the link is faster than the one on which the constants were measured. The
// processor may then limit the call, and its constants were not measured at that rate.
bool beyond_measured(const Constants& constants);

// A predicted call, by the best schedule of plain MPI or by one of slimpi's.
struct Forecast {
  Layout layout;
  double bytes = 0;
  int bits = 0;  // 0: plain
  Schedule schedule{};
  Cost cost;
  double plain_seconds = 0;  // seconds of the best plain schedule
  bool used = false;         // slimpi would choose this schedule
};

// Predicts calls. If the options name a number of nodes, returns all schedules for a job of that
// size; otherwise, for 2 to 100,000 nodes, the best schedule of plain MPI and the one that slimpi
// chooses.
std::vector<Forecast> forecasts(const Options& options, const Constants& constants);

std::string table(const Options& options, const Constants& constants,
                  const std::vector<Forecast>& all);
std::string to_json(const Constants& constants, const std::vector<Forecast>& all);

}  // namespace slimpi::bench
