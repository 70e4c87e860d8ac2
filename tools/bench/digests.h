// SPDX-License-Identifier: BSD-3-Clause
// Digests of sums that are the same on every machine: docs/DIGESTS.md.
#pragma once
#include "tools/bench/world.h"

namespace slimpi::bench {

// Prints a row for each sum that the ranks of the job can make. Collective over MPI_COMM_WORLD.
// Returns the exit status: 0, or 1 where ranks that must have the same bytes have not, or where
// there is no sha256sum.
int print_digests(const World& world);

}  // namespace slimpi::bench
