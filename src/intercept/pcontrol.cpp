// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/shim.h"

// The arguments behind the level mean something only to whoever defined that level; MPI's own
// function reads none.
SLIMPI_EXPORT int MPI_Pcontrol(const int level, ...) {
  slimpi::intercept::control(level);
  return SLIMPI_NEXT("MPI_Pcontrol", int(int, ...))(level);
}

// MPICH's mpi_f08 module does not come by MPI_Pcontrol. `error` is not in the standard's interface.
SLIMPI_EXPORT void mpi_pcontrol_f08_(const int* level, int* error) {
  slimpi::intercept::control(*level);
  SLIMPI_NEXT("mpi_pcontrol_f08_", void(const int*, int*))(level, error);
}
