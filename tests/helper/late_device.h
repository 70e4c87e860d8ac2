// SPDX-License-Identifier: BSD-3-Clause
// A staged device in ordinary memory whose streams do their work late: a piece at a time, and only
// while somebody polls. Whose piece is drawn by chance, or is always that of the stream which is
// asked for, so that all others are as late as they can be. Only events order two streams. A kernel
// or copy that reads what an earlier one has not yet written gives wrong bytes.
#pragma once
#include "device/device.h"
#include "tests/helper/chance.h"

namespace slimpi::test {

// Returns the device. Its streams draw from `chance` until the next call. This call also draws in
// which way they are late. Only one thread at a time uses the device.
const device::Device& late_device(Chance& chance);

// Closes all streams, and drops the work that they have not done.
void close_late_streams();

}  // namespace slimpi::test
