// SPDX-License-Identifier: BSD-3-Clause
// The catch-all of the intercepted names. No exception of slimpi's crosses an MPI entry point: what
// slimpi throws inside a float sum becomes an MPI error by the communicator's error handler, on all
// of its ranks, or sends the call to MPI where none of them has begun it (call::recover). Elsewhere
// it costs what slimpi would have done: a count, a switch, a report. Exceptions of the program's
// own error handlers pass through, as they do without slimpi; so does the cancellation of a thread.
#pragma once
#include <utility>

#include "base/exceptions.h"

namespace slimpi::call {}
namespace slimpi::mpi {}

namespace slimpi::intercept {

// What this layer does is in their words.
using namespace call;
using namespace mpi;

// Runs slimpi's part of an intercepted function. Returns the status of what it threw. Everything
// that may call the program's code runs inside one.
template <typename Run>
inline Status catch_all(const Run& run) {
  try {
    run();
    return Status::ok;
  } catch (...) {
    if (std::exchange(t_programs_exception, false)) throw;
    return status_of_exception();
  }
}

}  // namespace slimpi::intercept
