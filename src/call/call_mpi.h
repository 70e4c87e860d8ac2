// SPDX-License-Identifier: BSD-3-Clause
// A call that MPI does, for the rest of src/call; src/intercept has call_mpi() (call/entry.h).
#pragma once
#include <optional>

#include "call/request.h"

namespace slimpi::call {

// As call_mpi(), in the program's floating-point environment, called from inside slimpi's own.
int call_mpi_from_inside(const Allreduce& call, std::optional<BypassReason> reason);

}  // namespace slimpi::call
