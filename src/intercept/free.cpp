// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_free and MPI_Comm_disconnect, intercepted only to know which communicator is being
// freed. They call the delete callbacks of attributes while MPI iterates over the communicator's
// attributes, so no attribute may be read or set there. All ranks are inside that call together,
// whichever callback runs first on each, so all of them leave sums on that communicator to MPI.
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

namespace slimpi::intercept {

namespace {
int free_comm(const auto& next, void* comm) {
  (void)catch_all([&] { call::finish_on(read<Comm>(comm)); });
  const Freeing freeing(read<Comm>(comm));
  return next(comm);
}
}  // namespace

SLIMPI_BOTH(Comm_free, free_comm, (void* comm), comm)
SLIMPI_BOTH(Comm_disconnect, free_comm, (void* comm), comm)

SLIMPI_F08(comm_free, (int* comm, int* error), free_comm(next, comm), comm)
SLIMPI_F08(comm_disconnect, (int* comm, int* error), free_comm(next, comm), comm)

}  // namespace slimpi::intercept
