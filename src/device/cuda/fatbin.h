// SPDX-License-Identifier: BSD-3-Clause
// The compiled kernels, as nvcc wrote them, embedded in the plugin.
#pragma once

namespace slimpi::device::cuda {

// One file of kernels/cuda each.
enum class Module { encode, sum, decode, packed, plain, count };

// For cuModuleLoadData().
const void* image_of(Module module);

}  // namespace slimpi::device::cuda
