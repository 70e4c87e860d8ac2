// SPDX-License-Identifier: BSD-3-Clause
#include "intercept/shim.h"

// The arguments behind the level mean something only to whoever defined that level; MPI's own
// function reads none.
SLIMPI_EXPORT int MPI_Pcontrol(const int level, ...) {
  slimpi::intercept::control(level);
  return SLIMPI_NEXT("MPI_Pcontrol", int(int, ...))(level);
}
