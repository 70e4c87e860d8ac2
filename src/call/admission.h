// SPDX-License-Identifier: BSD-3-Clause
// The way in: the steps with which every kind of call begins, blocking, nonblocking or persistent.
// Two decisions follow each other. admit() needs no other rank: it leaves a call to MPI if every
// rank does the same, whatever its options are. decide() makes the ranks compare their options, if
// they have not yet, and then decides by the options. So nothing is decided from options of one
// rank.
//
//   blocking     dispatch(): the steps of admit(), decide(), run()
//   nonblocking  admit(); decide() and run() in a fiber, or decide at once where all ranks can
//   persistent   admit() and decide() at the init; run() in a fiber at each start
//
// In run() all ranks together may still leave a call to MPI: `tests/check/reasons.sh --list` prints
// every place.
#pragma once
#include "algorithm/policy.h"
#include "call/request.h"
#include "call/runtime.h"

namespace slimpi::call {

// The result of admit(). Without a communicator the call has ended with the outcome.
struct Admission {
  Outcome outcome;
  Runtime* runtime = nullptr;
  comm::Communicator* communicator = nullptr;
};
Admission admit(Request& request, Way way);

// The decision of all ranks, and the outcome of a call that slimpi does not take. Without a
// decision the ranks could not decide.
struct Decided {
  Outcome outcome;
  const algorithm::Decision* decision = nullptr;
};

// Decides on a call. Collective. No nonblocking sum of the communicator is in flight, except the
// sum that calls this.
Decided decide(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Runs a sum that was decided on. Collective.
Outcome run(Runtime& runtime, comm::Communicator& communicator, const algorithm::Decision& decision,
            const Request& request);

// Returns the error of a sum that was decided on, after an earlier sum of the communicator failed.
Outcome refuse_failed(Runtime& runtime, comm::Communicator& communicator);

// Calls decide() and run(), and counts the sum for SLIMPI_CALLS_PER_STEP.
Outcome decide_and_run(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Returns whether slimpi may take the call: it sums some elements of a type in SLIMPI_TYPES.
bool is_float_sum(const Request& call);

// Returns whether this rank can take sums that are not blocking. A thread must be able to let them
// make progress while the program blocks, in MPI or elsewhere, and other ranks wait for its part.
bool has_threads(const Runtime& runtime);

// Gives a float sum, maybe of no elements, the description that the program made for it. A sum that
// is left to MPI gets it, too, because a description is for one sum.
void take_description(Request& request);

// Makes the decisions for the calls of a communicator from this rank's options.
void prepare_calls(Runtime& runtime, comm::Communicator& communicator);

// Counts a float sum that goes to MPI for this reason, and its bytes.
void count_bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
                  const Request& request);

// Count a call that MPI makes. Without a communicator, because none was looked at, rank 0 of the
// job counts the bytes of float sums.
inline Outcome bypass(Runtime& runtime, BypassReason reason) {
  runtime.statistics.bypassed(reason);
  return Outcome::bypassed(reason);
}
Outcome bypass(Runtime& runtime, BypassReason reason, const Request* float_sum);
Outcome bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
               const Request& request);

}  // namespace slimpi::call
