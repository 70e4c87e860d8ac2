// SPDX-License-Identifier: BSD-3-Clause
// The first steps of every call, blocking, nonblocking or persistent, which decide whether slimpi
// takes the call or leaves it to MPI. admit() decides locally, from facts that agree on all ranks
// (except SLIMPI_TYPES: a rank that leaves a type to MPI tells the others). decide() lets the ranks
// compare their options if they have not done so yet, which needs communication, and then decides
// by the options.
//
//   blocking     dispatch(): the steps of admit(), decide(), run()
//   nonblocking  admit(); then decide() and run() in a fiber (base/fiber.h), or without a fiber if
//                MPI makes the sum and every rank began it after the comparison of options
//   persistent   admit() and decide() at the init; run() in a fiber at each start
//
// Even in run() all ranks together may leave a call to MPI; `tests/check/reasons.sh --list` prints
// where.
#pragma once
#include "algorithm/policy.h"
#include "call/request.h"
#include "call/runtime.h"
#include "comm/verdict.h"

namespace slimpi::call {

// Returns the communicator of a call that slimpi may take. Null if it does not take the call, which
// returns *outcome.
comm::Communicator* admit(Request& request, Way way, Outcome* outcome);

// Decides from the options whether slimpi takes a call, and under which plan (algorithm, codec,
// hierarchy). The decision is the same on all ranks; null if the ranks could not decide. Unless the
// decision is to take the call, sets *outcome, which the call returns. Collective. No other
// nonblocking sum of the communicator may be in flight.
const algorithm::Decision* decide(Runtime& runtime, comm::Communicator& communicator,
                                  const Request& request, Outcome* outcome);

// Runs a sum that slimpi takes, unless all ranks agree to leave it to MPI. Collective.
Outcome run(Runtime& runtime, comm::Communicator& communicator, const algorithm::Decision& decision,
            const Request& request);

// Raises an MPI error. Called instead of run() once an earlier sum of the communicator has failed.
Outcome refuse_failed(Runtime& runtime, comm::Communicator& communicator);

// Calls decide() and, if slimpi takes the call, run(). Unless the sum is smaller than
// SLIMPI_MIN_SIZE, counts it among the sums of the program's step (SLIMPI_CALLS_PER_STEP).
Outcome decide_and_run(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Returns whether slimpi may take the call: whether it is an MPI_SUM of at least one element, of a
// type that SLIMPI_TYPES names.
bool is_float_sum(const Request& request);

// Moves the description that slimpi_describe_next() has left for the next sum into the request of a
// float sum. Even a sum that goes to MPI or has no elements takes it, so that no later sum gets it.
void take_description(Request& request);

// Fills the communicator's table of decisions (Decisions) for calls of every size and type, from
// this rank's options.
void prepare_calls(Runtime& runtime, comm::Communicator& communicator);

// Finds the nodes (groups of ranks that share memory) and in which memory the call's buffers are,
// and leaves the call to MPI if either requires it. Collective.
comm::Verdict find_nodes_and_memory(Runtime& runtime, comm::Communicator& communicator,
                                    const Request& request);

// Ends a call after a step that has failed, or that has left the call to MPI on all ranks. After a
// failure the call also goes to MPI if slimpi cannot use the communicator at all.
Outcome end_call(Runtime& runtime, comm::Communicator& communicator, const Request& request,
                 const comm::Verdict& verdict);

// Counts a float sum that goes to MPI for this reason, and its bytes.
void count_bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
                  const Request& request);

// Return the outcome of a call that goes to MPI, and count the call and, for a float sum, its
// bytes: this rank's share of what an optimal algorithm would send between nodes. As long as the
// nodes are not known, the bytes count as Counts::bytes_bypassed_elsewhere.
inline Outcome bypass(Runtime& runtime, BypassReason reason) {
  runtime.statistics.bypassed(reason);
  return Outcome::bypassed(reason);
}
Outcome bypass(Runtime& runtime, BypassReason reason, const Request* float_sum);
Outcome bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
               const Request& request);

}  // namespace slimpi::call
