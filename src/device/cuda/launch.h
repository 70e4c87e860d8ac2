// SPDX-License-Identifier: BSD-3-Clause
// The kernel table of GPU memory: each function divides the work into CUDA blocks and queues it.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::device::cuda {

const kernels::Kernels* cuda_kernels();

}  // namespace slimpi::device::cuda
