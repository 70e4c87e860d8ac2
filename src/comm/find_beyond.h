// SPDX-License-Identifier: BSD-3-Clause
// The search for values that an algorithm or error feedback cannot take.
#pragma once
#include "comm/call.h"

namespace slimpi::comm {

// *found: whether any absolute value of the `count` floats in `data`, at the location, is above the
// limit; NaN is. Waits for the location's stream. Not collective.
Status find_beyond(const Call& call, const device::Location& location, const float* data,
                   std::uint64_t count, float limit, bool* found);

}  // namespace slimpi::comm
