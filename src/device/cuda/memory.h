// SPDX-License-Identifier: BSD-3-Clause
// The memory of GPUs, as the device row has it; see device.h.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

// Memory of a GPU, managed memory, memory of pools and of virtual memory management: yes. Pinned
// and mapped host memory: no, MPI and the host's kernels take it as it is.
bool owns(const void* pointer);

// The number of the GPU.
int ordinal(const void* pointer);

// Staging memory is pinned, on the GPU's own NUMA node.
Status allocate(const void* like, std::size_t bytes, Place place, void** memory);
void release(void* memory, Place place);

}  // namespace slimpi::device::cuda
