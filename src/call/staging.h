// SPDX-License-Identifier: BSD-3-Clause
// Calls that go to MPI with buffers that MPI cannot take. MPI works on copies in staging memory,
// for every datatype and operation, so the result has MPI's own bytes.
#pragma once
#include "call/entry.h"

namespace slimpi::call {

// As call_mpi_unstaged, with copies of the buffers that MPI cannot take. To be called only where
// there is memory that it cannot take: it asks the driver where the buffers lie.
int call_mpi_staged(const Allreduce& call);

}  // namespace slimpi::call
