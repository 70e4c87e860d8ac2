// SPDX-License-Identifier: BSD-3-Clause
// GPU memory: functions of the device row; see device.h.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

// Staging memory is pinned, on the GPU's own NUMA node.
Status allocate(const Location& location, std::size_t bytes, Place place, void** memory);
void release(void* memory, Place place);

Status pin(const Location& location, void* memory, std::size_t bytes);
void unpin(void* memory);

}  // namespace slimpi::device::cuda
