// SPDX-License-Identifier: BSD-3-Clause
// A staged device in ordinary memory whose streams do their work late: one piece at a time, and
// only when somebody polls. Which stream does a piece is drawn by chance; in the other mode it is
// always the stream that is polled, so that all others are as late as possible. Only events order
// two streams, so a kernel or copy gives wrong bytes if it reads what an earlier one has not yet
// written.
#pragma once
#include "device/device.h"
#include "tests/helper/base/chance.h"

namespace slimpi::test {

// Returns the device. Its streams draw from `chance` until the next call, and this call also draws
// how they are late. Only one thread may use the device at a time.
const device::Device& late_device(Chance& chance);

// Closes all streams and drops the work that is still queued.
void close_late_streams();

}  // namespace slimpi::test
