// SPDX-License-Identifier: BSD-3-Clause
// The MPIs that slimpi knows. Another one is a file of data like theirs and a line here.
#pragma once
#include "mpi/abi.h"

namespace slimpi::mpi {

extern const Abi kMpich;     // MPICH 3.2 and later, and what has its ABI: Intel MPI, MVAPICH
extern const Abi kStandard;  // MPI 5.0, chapter 20

// Open MPI's handles are the addresses of data. `symbol` finds one, or null.
Abi open_mpi(const void* (*symbol)(const char* name));

}  // namespace slimpi::mpi
