// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_VERIFY: the error of a call, measured against MPI's own sum of the same input. Both sums
// lie in the call's scratch memory on the host. All ranks of the call verify it, or none.
#pragma once
#include "base/option_types.h"
#include "comm/call.h"

namespace slimpi::call {

// Before the call: keeps its input, which lies at `from`; or, where the program sums doubles, those
// at `input`. *kept is false on all ranks where some rank has no memory for the two sums.
// Collective.
Status keep_for_verification(const comm::Call& call, const device::Location& from, ElementType type,
                             const void* input, bool* kept);

// After it: has MPI add the kept inputs, and counts and logs the relative L2 error of the result.
// Of 16-bit floats that is what was rounded to `programs_result`, and MPI adds 32-bit floats.
// Collective.
Status verify_result(const comm::Call& call, ElementType type, const void* programs_result);

}  // namespace slimpi::call
