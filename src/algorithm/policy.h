// SPDX-License-Identifier: BSD-3-Clause
// Decides whether slimpi takes a float sum, and makes the plan for it. Ranks that decided
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
  bool take = false;                        // slimpi takes the call; otherwise MPI runs it (bypass)
  BypassReason reason = BypassReason::off;  // why the call is left to MPI
  // One plan or, with SLIMPI_ALGORITHM=auto, several. The autotuner then finds the fastest of these
  // plans and plain MPI.
  std::vector<comm::Plan> plans;
  bool automatic = false;
  std::vector<const char*> candidates;  // MPI and the plans' algorithms, as the report names them
  int number = 0;                       // of the row of the rules that decided
};

// Returns whether SLIMPI_RULES decides for a communicator with these options.
bool rules_apply(const Config& config);

// Returns the decision for calls of SLIMPI_MIN_SIZE or more. `rule` is the row of SLIMPI_RULES that
// applies to them, or null. Does not communicate.
Decision make_decision(const Config& config, const Rule* rule,
                       Collective collective = Collective::allreduce);

// Drops the plans that would send at least as many bits per value as the type of the values has
// (`bits`). Exact sums of doubles are kept, and so are exact sums of any type with
// SLIMPI_HIERARCHY=flat. If no plan is left, MPI runs the call.
void keep_shorter(Decision& decision, int bits);

// Returns the reason why these options cannot be used together or in this build, or "".
std::string refuse(const Config& config, const Rules& rules);

// Returns the plan as text for the line of SLIMPI_LOG=info: "bytegrad, 8 bits, ...".
std::string describe(const comm::Plan& plan);

}  // namespace slimpi::algorithm
