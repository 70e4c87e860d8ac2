// SPDX-License-Identifier: BSD-3-Clause
// The way in: the steps with which every kind of call begins, blocking, nonblocking or persistent.
// There are two decisions, one after the other. admit() waits for no other rank. It leaves a call
// to MPI only if every rank does so, whatever options the ranks have. decide() first makes the
// ranks compare their options, if they have not done so, and then decides by the options. So no
// decision depends on options that only one rank has.
//
//   blocking     dispatch(): the steps of admit(), decide(), run()
//   nonblocking  admit(); then decide() and run() in a fiber. If every rank began the sum after the
//                ranks had compared their options, a sum that goes to MPI needs no fiber.
//   persistent   admit() and decide() at the init; run() in a fiber at each start
//
// In run() all ranks together may still leave a call to MPI: `tests/check/reasons.sh --list` prints
// every place.
#pragma once
#include "algorithm/policy.h"
#include "call/request.h"
#include "call/runtime.h"

namespace slimpi::call {

// The result of admit(). If `communicator` is null, slimpi does not take the call, and `outcome` is
// the result of the call.
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

// Decides on a call. Collective. No nonblocking sum of the communicator is in flight, except the
// sum that calls this.
Decided decide(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Runs a sum that was decided on. Collective.
Outcome run(Runtime& runtime, comm::Communicator& communicator, const algorithm::Decision& decision,
            const Request& request);

// Raises an MPI error in place of a sum that was decided on, because an earlier sum of the
// communicator failed.
Outcome refuse_failed(Runtime& runtime, comm::Communicator& communicator);

// Calls decide() and run(). Counts the sum for SLIMPI_CALLS_PER_STEP, unless it is smaller than
// SLIMPI_MIN_SIZE.
Outcome decide_and_run(Runtime& runtime, comm::Communicator& communicator, const Request& request);

// Returns whether slimpi may take the call: it is an MPI_SUM of one element or more, of a type that
// SLIMPI_TYPES names.
bool is_float_sum(const Request& request);

// Returns whether this rank can take sums that are not blocking. Such sums need a thread of slimpi:
// while the program blocks, in MPI or elsewhere, other ranks may wait for this rank's part.
bool has_threads(const Runtime& runtime);

// Moves the description that slimpi_describe_next has set to the request, if the request is a float
// sum, also of no elements. A sum that goes to MPI takes the description, too, because a
// description is for one sum and must not stay for the next.
void take_description(Request& request);

// Makes the decisions for the calls of a communicator from this rank's options.
void prepare_calls(Runtime& runtime, comm::Communicator& communicator);

// Counts a float sum that goes to MPI for this reason, and its bytes.
void count_bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
                  const Request& request);

// Count a call that goes to MPI, and the bytes of a float sum. With a communicator whose nodes are
// known, these are this rank's part of the bytes that an optimal algorithm sends between nodes.
// Otherwise Counts::bytes_bypassed_elsewhere counts them.
inline Outcome bypass(Runtime& runtime, BypassReason reason) {
  runtime.statistics.bypassed(reason);
  return Outcome::bypassed(reason);
}
Outcome bypass(Runtime& runtime, BypassReason reason, const Request* float_sum);
Outcome bypass(Runtime& runtime, BypassReason reason, const comm::Communicator& communicator,
               const Request& request);

}  // namespace slimpi::call
