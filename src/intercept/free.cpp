// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_free and MPI_Comm_disconnect, intercepted only to know which communicator is being
// freed. They call the delete callbacks of attributes while MPI iterates over the communicator's
// attributes, so no attribute may be read or set there. All ranks are inside such a call together,
// whichever callback runs first on each, so all of them leave sums on that communicator to MPI.
#include "call/entry.h"
#include "intercept/catch_all.h"
#include "intercept/fortran.h"

using slimpi::call::Freeing;
using slimpi::call::sums_in_flight;
using slimpi::mpi::Comm;
using slimpi::mpi::read;

namespace {
// Nonblocking sums that are in flight use the communicator's state.
void finish_sums(const void* comm) {
  if (sums_in_flight())
    (void)slimpi::intercept::catch_all([&] { slimpi::call::wait_for_sums_on(read<Comm>(comm)); });
}

int free_comm(int (*next)(void*), void* comm) {
  finish_sums(comm);
  const Freeing freeing(read<Comm>(comm));
  return next(comm);
}
}  // namespace

SLIMPI_BOTH(Comm_free, free_comm, (void* comm), comm)
SLIMPI_BOTH(Comm_disconnect, free_comm, (void* comm), comm)

// MPICH's mpi_f08 module calls PMPI_ names directly. Elsewhere a handle there is another number.
SLIMPI_EXPORT void mpi_comm_free_f08_(int* comm, int* error) {
  finish_sums(comm);
  const Freeing freeing(read<Comm>(comm));
  SLIMPI_NEXT("mpi_comm_free_f08_", void(int*, int*))(comm, error);
}

SLIMPI_EXPORT void mpi_comm_disconnect_f08_(int* comm, int* error) {
  finish_sums(comm);
  const Freeing freeing(read<Comm>(comm));
  SLIMPI_NEXT("mpi_comm_disconnect_f08_", void(int*, int*))(comm, error);
}
