// SPDX-License-Identifier: BSD-3-Clause
// Decides how a float sum is answered. A rank that decides alone deadlocks the job, so the inputs
// are things that every rank knows alike: the count, the options that agree, the communicator.
#pragma once
#include <string>
#include <vector>

#include "algorithm/algorithm.h"
#include "base/statistics.h"
#include "policy/rules.h"

namespace slimpi::policy {

struct Decision {
  bool take = false;                        // answer it with a plan; otherwise leave it to MPI
  BypassReason reason = BypassReason::off;  // why it is left
  // One plan, or several of which the fastest is to be found, plain MPI among them.
  std::vector<comm::Plan> plans;
};

// `name` is the communicator's.
Decision decide(const Config& config, const Rules& rules, const std::string& name,
                std::uint64_t count);

// Why these options cannot run in this build; "" when they can.
std::string refuse(const Config& config, const Rules& rules);

// The plan in words, for the line at the first compressed call: "bytegrad, 8 bits, ...".
std::string describe(const comm::Plan& plan);

}  // namespace slimpi::policy
