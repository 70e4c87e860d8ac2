// SPDX-License-Identifier: BSD-3-Clause
// The requests of calls that MPI makes on copies of buffers that it cannot access. Each has a
// number (never 0), because its handle cannot identify it: as soon as the request is complete, MPI
// may use the handle again in another thread.
#pragma once
#include <cstdint>

#include "base/status.h"
#include "mpi/abi.h"

namespace slimpi::call {

// Returns the number of a request of begin_staged(); 0 for another request.
std::uint64_t staged_number(mpi::Request handle);

// Copies the input of a persistent request that does not run, before MPI starts the request.
// Returns the code for the program. If the copy fails, raises an error on the communicator of the
// request. Sets *started to whether the input was copied.
int start_staged(std::uint64_t number, bool* started);

// Takes start_staged() back, because MPI has not started the request.
void take_back_staged(std::uint64_t number);

// finish_staged() copies the result to the program's buffer, once, and returns the code for the
// program. Finish says in which state the function of MPI has left the request.
enum class Finish {
  ends,   // the request is complete, and MPI has freed it, unless it is persistent
  stays,  // the request is complete
  kept,   // MPI has an error, and has kept the request: it is complete only if it is persistent
};
int finish_staged(std::uint64_t number, Finish how);

// Drops a request that MPI has freed for the program: an incomplete or a persistent request.
void free_staged(std::uint64_t number);

// Forgets all requests, because MPI has ended.
void abandon_staged();

}  // namespace slimpi::call
