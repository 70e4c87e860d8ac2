// SPDX-License-Identifier: BSD-3-Clause
// The first steps of every call of the program, blocking, nonblocking or persistent, which decide
// whether slimpi takes the call or leaves it to MPI. admit() decides locally, from facts that agree
// on all ranks; only SLIMPI_TYPES may differ, so a rank that leaves a type to MPI tells the others.
// decide() communicates: it makes the ranks compare their options, unless they have done so, and
// decides by the options.
//
//   blocking     dispatch(): the steps of admit(), decide(), run()
//   nonblocking  admit(); then decide() and run() in a fiber (base/fiber.h). A sum that goes to MPI
//                needs no fiber if every rank began it after the ranks had compared their options.
//   persistent   admit() and decide() at the init; run() in a fiber at each start
//
// In run() all ranks together may still leave a call to MPI: `tests/check/reasons.sh --list` prints
// every place.
#pragma once
#include "algorithm/policy.h"
#include "call/request.h"
#include "call/runtime.h"

namespace slimpi::call {

// The result of admit(), which says whether slimpi may take a call. If `communicator` is null,
// slimpi does not take the call, and `outcome` is the result of the call.
struct Admission {
  Outcome outcome;
  Runtime* runtime = nullptr;
  comm::Communicator* communicator = nullptr;
};
Admission admit(Request& request, Way way);

// The result of decide(). `decision` is the same on all ranks. There are three cases:
//   undecided()      the ranks could not decide; `outcome` is the result of the call
//   !decision->take  slimpi does not take the call; `outcome` is the result of the call
//   decision->take   slimpi takes the call; `outcome` has no meaning
struct Decided {
  bool undecided() const { return decision == nullptr; }

  Outcome outcome;
  const algorithm::Decision* decision = nullptr;
};

// Decides by the options whether slimpi takes a call, and under what plan (a way to sum: algorithm,
// codec, hierarchy). Collective. No other nonblocking sum of the communicator may be in flight.
Decided decide(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Makes a sum that slimpi takes, or leaves the sum to MPI if all ranks agree on that. Collective.
Outcome run(Runtime& runtime, comm::Communicator& communicator, const algorithm::Decision& decision,
            const Request& request);

// Raises an MPI error instead of making a sum, because an earlier sum of the communicator failed.
Outcome refuse_failed(Runtime& runtime, comm::Communicator& communicator);

// Calls decide() and, if slimpi takes the call, run(). Counts the sum among the sums of the
// program's step (SLIMPI_CALLS_PER_STEP), unless it is smaller than SLIMPI_MIN_SIZE.
Outcome decide_and_run(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Returns whether slimpi may take the call: it is an MPI_SUM of one element or more, of a type that
// SLIMPI_TYPES names.
bool is_float_sum(const Request& request);

// If the program has described its next sum by slimpi_describe_next, moves the description into the
// request of a float sum, also of one without elements. A sum that goes to MPI takes the
// description, too, because a description is for one sum and must not stay for the next.
void take_description(Request& request);

// Decides in advance, by this rank's options, on the calls of every size and type.
void prepare_calls(Runtime& runtime, comm::Communicator& communicator);

// Counts a float sum that goes to MPI for this reason, and its bytes.
void count_bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
                  const Request& request);

// Count a call that goes to MPI and, for a float sum, its bytes; return the outcome. If the nodes
// are known, the bytes are this rank's part of those that an optimal algorithm sends between nodes.
// Otherwise Counts::bytes_bypassed_elsewhere counts the bytes.
inline Outcome bypass(Runtime& runtime, BypassReason reason) {
  runtime.statistics.bypassed(reason);
  return Outcome::bypassed(reason);
}
Outcome bypass(Runtime& runtime, BypassReason reason, const Request* float_sum);
Outcome bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
               const Request& request);

}  // namespace slimpi::call
