// SPDX-License-Identifier: BSD-3-Clause
// Foreign memory: that of GPUs without a row in the device table. These are AMD's (HIP), Intel's
// (Level Zero), and NVIDIA's if slimpi's plugin is not installed, is not wanted, or finds the
// driver too old. Neither the host nor slimpi's kernels can access it, so calls with such buffers
// go to MPI.
#pragma once

namespace slimpi::device {

// Looks for the libraries of these GPUs among the libraries that the process has loaded, and loads
// none. load_plugins() calls it when there are new libraries. `cuda_row`: NVIDIA's memory has a row
// in the device table, so it is not foreign.
void find_foreign(bool cuda_row);

// Returns whether find_foreign() has found HIP, CUDA without a row, or Level Zero together with a
// driver or an Intel GPU. Costs one load from memory.
bool foreign_possible();

// Returns the owner of foreign memory, such as "an AMD GPU", or null for other memory: asks each
// library that find_foreign() has found. Memory that the host can access (pinned, shared or
// managed) is not foreign.
const char* foreign_owner(const void* pointer);

}  // namespace slimpi::device
