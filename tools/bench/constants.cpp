// SPDX-License-Identifier: BSD-3-Clause
#include "tools/bench/constants.h"

#include "base/process.h"
#include "tools/bench/candidate.h"

namespace slimpi::bench {

std::string read_constants(const Options& options, Constants& c) {
  if (!options.constants.empty())
    if (std::string wrong = read_json(options.constants, c); !wrong.empty()) return wrong;
  c.measured_link = c.link;
  if (options.latency > 0) c.latency = options.latency;
  if (options.wire > 0) {
    const double slower = c.exchange / c.link;  // what MPI loses beside the link itself
    c.link = 8 / (options.wire * cost::kPayload);
    c.exchange = c.link * slower;
  }
  return "";
}

Layout layout_of(double nodes, double ranks, const Constants& constants) {
  const bool lab = !environment_variable("SLIMPILAB").empty();
  return {nodes, ranks / nodes, double(constants.cores), lab};
}

}  // namespace slimpi::bench
