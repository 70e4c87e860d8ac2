// SPDX-License-Identifier: BSD-3-Clause
// CUDA IPC: GPU memory that several processes of a machine use.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

// open() works where both processes use the same GPU, or GPUs that can access each other's memory.
// Otherwise the status is CUDA's reason.
extern const Ipc kIpc;

}  // namespace slimpi::device::cuda
