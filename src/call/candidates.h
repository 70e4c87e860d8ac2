// SPDX-License-Identifier: BSD-3-Clause
// Calls with several candidates. The autotuner finds the fastest one by trials.
#pragma once
#include "call/entry.h"
#include "call/prepared_calls.h"
#include "call/runtime.h"

namespace slimpi::call {

// Nanoseconds, by which candidates are compared. A unit test has its own.
extern std::uint64_t (*candidate_clock)();

// Does a call of SLIMPI_ALGORITHM=auto between nodes: by MPI's own allreduce or by one of the
// plans.
Outcome run_fastest(Runtime& runtime, comm::Communicator& communicator, PreparedCall& prepared,
                    const Allreduce& request);

// Does a call inside one node: by MPI's own allreduce or through shared memory. Both give the same
// bytes. Left where MPI has to do the call.
Outcome run_in_node_fastest(Runtime& runtime, comm::Communicator& communicator,
                            const comm::Plan& plan, const Allreduce& request);

// Does a call with one plan. Left on a fallback to MPI.
Outcome run_plan(Runtime& runtime, comm::Communicator& communicator, const comm::Plan& plan,
                 const Allreduce& request);

}  // namespace slimpi::call
