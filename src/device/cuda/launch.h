// SPDX-License-Identifier: BSD-3-Clause
// The table of kernels of GPU memory: each function cuts the work into blocks and queues it.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::device::cuda {

const kernels::Kernels* cuda_kernels();

}  // namespace slimpi::device::cuda
