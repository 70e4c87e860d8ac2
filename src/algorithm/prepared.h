// SPDX-License-Identifier: BSD-3-Clause
// What must exist before the first message of a call: scratch memory and streams.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// Reserves memory and opens streams for the call, as Functions::reserve says. *ready: all ranks
// could; it is the same on all. The ranks communicate at the first call of a size. Once some rank
// prepares for a staged device, the segment class is never `small` again.
Status prepare(const comm::Call& call, bool* ready);

}  // namespace slimpi::algorithm
