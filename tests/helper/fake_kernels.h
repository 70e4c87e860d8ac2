// SPDX-License-Identifier: BSD-3-Clause
// How the fake driver runs a kernel: as the host's compiler has compiled its source
// (emulated_cuda.h), or, where FAKE_PTX names the files with what nvcc made of it, with colons
// between them, by interpreting those (tests/ptx/machine.h).
#pragma once

namespace slimpi::test {

struct EmulatedKernel;

// Ends the program where the interpreter finds something wrong. The kernel reaches the memory of
// this device.
void run_kernel(const EmulatedKernel& kernel, unsigned blocks, unsigned threads,
                const void* arguments, int device);

// Ends the program if the kernel is given memory that a GPU would not let it use.
void expect_reachable(const EmulatedKernel& kernel, void* arguments);

// Turns the pointers of the arguments into those by which this device reaches its memory. The
// memory of another one stays out of reach.
void reach_arguments(const EmulatedKernel& kernel, void* arguments, int device);

}  // namespace slimpi::test
