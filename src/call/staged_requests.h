// SPDX-License-Identifier: BSD-3-Clause
// The requests of calls that MPI makes on copies of buffers that it cannot take. Each request has a
// number, because MPI uses its handle again as soon as it is complete, maybe in another thread. 0:
// no request.
#pragma once
#include <cstdint>

#include "base/status.h"
#include "mpi/abi.h"

namespace slimpi::call {

// Returns the number of a request of begin_staged(); 0 for another request.
std::uint64_t staged_number(mpi::Request request);

// Copies the input of a persistent request, before MPI starts it.
Status start_staged(std::uint64_t number);

// Gives the program the result, once. Returns the code for the program.
enum class Finish {
  ends,    // the request is complete, and MPI has freed it, unless it is persistent
  stays,   // the request is complete
  unsure,  // MPI has an error, and has left the request as it was
};
int finish_staged(std::uint64_t number, Finish how);

// Drops a request that MPI has freed: one that was not complete, or is persistent.
void free_staged(std::uint64_t number);

// Forgets all requests, because MPI has ended.
void abandon_staged();

}  // namespace slimpi::call
