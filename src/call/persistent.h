// SPDX-License-Identifier: BSD-3-Clause
// Persistent sums. Ranks may start those of one communicator in different orders, so each has an
// internal communicator and a state of its own, made together at MPI_Allreduce_init. The program
// holds a persistent receive of an empty message, which this process sends to itself when the sum
// is complete. So MPI completes the request, in every function that completes any.
#pragma once
#include "call/entry.h"

namespace slimpi::call {

// MPI ends; the requests are not used any more.
void abandon_persistent();

}  // namespace slimpi::call
