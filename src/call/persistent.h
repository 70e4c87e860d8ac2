// SPDX-License-Identifier: BSD-3-Clause
// Persistent sums. Ranks may start those of one communicator in different orders, so each has an
// internal communicator and a state of its own, made together at MPI_Allreduce_init. The program
// holds a persistent receive of an empty message, which this process sends to itself when the sum
// is complete. So MPI completes the request, in every function that completes any.
#pragma once
#include "call/entry.h"

namespace slimpi::call {

struct Sum;

// If the request is a persistent sum that failed since the last call: that sum. The caller raises
// its failure and releases it, and it counts as a fiber in flight until then.
Sum* take_failed(mpi::Request request);

// MPI ends; the requests are not used any more.
void abandon_persistent();

}  // namespace slimpi::call
