// SPDX-License-Identifier: BSD-3-Clause
// Checks and translates the pointers that a kernel of the fake driver is given.
#pragma once

namespace slimpi::test {

struct EmulatedKernel;

// Ends the program if the kernel is given memory that a GPU would not let it use.
void expect_reachable(const EmulatedKernel& kernel, void* arguments);

// Replaces the pointers to memory of this device by those with which the device reaches the memory.
// Memory of another device stays out of reach.
void reach_arguments(const EmulatedKernel& kernel, void* arguments, int device);

}  // namespace slimpi::test
