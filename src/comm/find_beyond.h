// SPDX-License-Identifier: BSD-3-Clause
// The search for values that an algorithm or error feedback cannot take.
#pragma once
#include "comm/call.h"

namespace slimpi::comm {

// *found: whether any absolute value of the `count` floats in `data`, at the location, is above the
// limit; NaN is. Waits for the location's stream. Not collective. Does not fail for want of memory
// after reserve_find_beyond() of the call and the location.
Status find_beyond(const Call& call, const device::Location& location, const float* data,
                   std::uint64_t count, float limit, bool* found);
Status reserve_find_beyond(const Call& call, const device::Location& location);

}  // namespace slimpi::comm
