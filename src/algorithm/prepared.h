// SPDX-License-Identifier: BSD-3-Clause
// What must exist before the first message of a call: scratch memory and streams.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// Reserves memory and streams for calls of this plan and count. *ready: all ranks could; it is the
// same on all. Collective at the first call of a size, without communication later. `location` is
// the program's buffer's. Once some rank prepares for a staged device, the segment class is `large`
// for good.
Status prepare(comm::Communicator& communicator, const comm::Plan& plan, std::uint64_t count,
               const device::Location& location, bool* ready);

}  // namespace slimpi::algorithm
