// SPDX-License-Identifier: BSD-3-Clause
// Memory of a GPU that several processes of a machine work in.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

// Opening works where both processes use the same GPU, or GPUs that reach each other's memory; else
// the status is CUDA's reason.
extern const Ipc kIpc;

}  // namespace slimpi::device::cuda
