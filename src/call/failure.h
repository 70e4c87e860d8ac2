// SPDX-License-Identifier: BSD-3-Clause
// How a call that slimpi took ends when something fails.
#pragma once
#include "base/status.h"
#include "call/runtime.h"

namespace slimpi::call {

// Handles a failure in the middle of a call: reports it to the other ranks and raises an MPI error
// on the program's communicator. Returns the code for the program. Messages may still be in flight,
// so no later call on this communicator can be done, unless all ranks know the failure.
int fail_call(Runtime& runtime, comm::Communicator& communicator, Status status);

}  // namespace slimpi::call
