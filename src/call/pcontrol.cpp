// SPDX-License-Identifier: BSD-3-Clause
// What the levels of MPI_Pcontrol do.
#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

void control(int level) {
  // Before MPI_Init no MPI function may be called. A switch made then takes effect later.
  if (level == 0) Runtime::on = false;
  if (level == 1) Runtime::on = true;
  Runtime* const runtime = Runtime::get();
  // Writes the numbers of rank 0 only: a sum over the ranks would wait for a rank that does not
  // call MPI_Pcontrol.
  if (level == 2 && runtime != nullptr && !runtime->finished) runtime->write_summary(false);
}

}  // namespace slimpi::call
