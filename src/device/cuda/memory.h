// SPDX-License-Identifier: BSD-3-Clause
// GPU memory: functions of the device row; see device.h.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

// True for GPU memory, managed memory, and memory of pools and of virtual memory management. False
// for pinned and mapped host memory: MPI and the host's kernels use it directly.
bool owns(const void* pointer);

// The number of the GPU.
int ordinal(const void* pointer);

// Staging memory is pinned, on the GPU's own NUMA node.
Status allocate(const void* like, std::size_t bytes, Place place, void** memory);
void release(void* memory, Place place);

}  // namespace slimpi::device::cuda
