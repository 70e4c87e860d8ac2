// SPDX-License-Identifier: BSD-3-Clause
// Makes a sum of a run, and checks everything that must hold of it.
#pragma once
#include "tests/fuzz/communicators.h"
#include "tests/fuzz/run.h"

namespace fuzz {

// A sum of floats: the ranks hold the same bytes, each element is within the bound of its codec,
// what is not finite stays so, zeros stay zero, nothing but the output was written, and the library
// answered exactly where it should. What it left to MPI has MPI's own bytes.
void sum_floats(Run& run, Communicator& on, Draws& draws);

// Makes a reduction of another type or operation, which must give MPI's own bytes.
void reduce_others(Run& run, const Communicator& on, Draws& draws);

}  // namespace fuzz
