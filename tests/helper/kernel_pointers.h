// SPDX-License-Identifier: BSD-3-Clause
// The pointers that a kernel of the fake driver is given.
#pragma once

namespace slimpi::test {

struct EmulatedKernel;

// Ends the program if the kernel is given memory that a GPU would not let it use.
void expect_reachable(const EmulatedKernel& kernel, void* arguments);

// Turns the pointers of the arguments into those of this device for its memory. The memory of
// another device stays out of reach.
void reach_arguments(const EmulatedKernel& kernel, void* arguments, int device);

}  // namespace slimpi::test
