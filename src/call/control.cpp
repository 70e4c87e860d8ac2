// SPDX-License-Identifier: BSD-3-Clause
// What the levels of MPI_Pcontrol mean.
#include "call/entry.h"
#include "call/runtime.h"

namespace slimpi::call {

void control(int level) {
  // Before MPI_Init nothing of MPI may be called; what is switched then holds later.
  if (level == 0) Runtime::on = false;
  if (level == 1) Runtime::on = true;
  Runtime* const runtime = Runtime::get();
  // Of rank 0 alone: a sum over the ranks would wait for one that does not call this.
  if (level == 2 && runtime != nullptr && !runtime->finished) runtime->write_summary(false);
}

}  // namespace slimpi::call
