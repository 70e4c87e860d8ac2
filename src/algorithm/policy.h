// SPDX-License-Identifier: BSD-3-Clause
// Decides for a float sum whether slimpi takes it, and makes the plan for it. Ranks that decided
// differently would deadlock, so every input is the same on all ranks: the count, the options that
// the ranks have compared, and the name of the communicator.
#pragma once
#include <string>
#include <vector>

#include "algorithm/algorithm.h"
#include "observe/statistics.h"
#include "options/rules.h"

namespace slimpi::algorithm {

struct Decision {
  bool take = false;                        // slimpi does the call; false: MPI does (bypass)
  BypassReason reason = BypassReason::off;  // reason of the bypass
  // One plan; several with SLIMPI_ALGORITHM=auto, where the autotuner finds the fastest of these
  // and of plain MPI.
  std::vector<comm::Plan> plans;
  bool automatic = false;
  std::vector<const char*> candidates;  // MPI and the plans' algorithms, as the report names them
  int number = 0;                       // index of the row of the rules that decided
};

// Returns whether SLIMPI_RULES decides about a communicator with these options.
bool rules_apply(const Config& config);

// Returns the decision for calls of SLIMPI_MIN_SIZE or more. `rule`: the row of SLIMPI_RULES that
// decides about the call, or null. Does not communicate.
Decision make_decision(const Config& config, const Rule* rule,
                       Collective collective = Collective::allreduce);

// For sums of a type with `bits` bits: drops the plans that would send as many bits a value, or
// more, except exact sums of doubles and, with SLIMPI_HIERARCHY=flat, exact sums of any type. If no
// plan is left, MPI makes the call.
void keep_shorter(Decision& decision, int bits);

// Returns the reason why these options cannot be used in this build or together; "" if they can.
std::string refuse(const Config& config, const Rules& rules);

// Returns the plan as text, for the line that SLIMPI_LOG=info prints: "bytegrad, 8 bits, ...".
std::string describe(const comm::Plan& plan);

}  // namespace slimpi::algorithm
