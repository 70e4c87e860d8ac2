// SPDX-License-Identifier: BSD-3-Clause
// A staged device in ordinary memory whose streams do their work late: a piece at a time, and only
// while somebody polls. Whose piece is drawn by chance, or is always that of the stream which is
// asked for, so that all others are as late as they can be. Only events order two streams. A kernel
// or copy that reads what an earlier one has not yet written gives wrong bytes.
#pragma once
#include "device/device.h"
#include "tests/helper/chance.h"

namespace slimpi::test {

// The device; its streams draw from `chance` until the next call, and that call draws how. One
// thread at a time uses it.
const device::Device& late_device(Chance& chance);

// Closes all streams; what they have not done is dropped.
void close_late_streams();

}  // namespace slimpi::test
