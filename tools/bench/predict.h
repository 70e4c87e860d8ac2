// SPDX-License-Identifier: BSD-3-Clause
// The constants of the cost model, and tables of what it predicts.
#pragma once
#include <string>
#include <vector>

#include "tools/bench/cost.h"
#include "tools/bench/measure.h"

namespace slimpi::bench {

using namespace cost;

std::string to_json(const Constants& constants);
// Reads the file of this path. Returns "" or what is wrong with it.
std::string read_json(const std::string& path, Constants& constants);

// The constants of options.constants, or the ones built in if it is empty; then another link or
// latency where the options name one. measured_link stays that of the constants. Returns "" or
// what is wrong with the file.
std::string read_constants(const Options& options, Constants& constants);

// One predicted call: the best plain schedule, or one of slimpi's.
struct Forecast {
  Layout layout;
  double bytes = 0;
  int bits = 0;  // 0: plain
  Schedule schedule{};
  Cost cost;
  double plain_seconds = 0;  // of the best plain schedule
  bool used = false;         // slimpi's choice
};

// With options.nodes: every schedule at that size of the job; otherwise the best plain one and the
// one that slimpi uses, from 2 to 100,000 nodes.
std::vector<Forecast> forecasts(const Options& options, const Constants& constants);

std::string table(const Options& options, const Constants& constants,
                  const std::vector<Forecast>& all);
std::string to_json(const Constants& constants, const std::vector<Forecast>& all);

// Puts the prediction beside what was measured in this job.
void add_predictions(const World& world, const Constants& constants, std::vector<Row>& rows);

}  // namespace slimpi::bench
