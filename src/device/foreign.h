// SPDX-License-Identifier: BSD-3-Clause
// Foreign memory, which is that of GPUs without a row in the device table: AMD's (HIP), Intel's
// (Level Zero), and NVIDIA's if slimpi's plugin is not installed, is not wanted, or finds the
// driver too old. Neither the host nor slimpi's kernels can access it, so calls with these buffers
// go to MPI.
#pragma once

namespace slimpi::device {

// Looks for HIP, Level Zero and CUDA among the libraries that the process has loaded, and loads
// none. Called by load_plugins() when there are new libraries. `cuda_row` says that NVIDIA's memory
// has a row in the device table, and so is not foreign.
void find_foreign(bool cuda_row);

// Returns whether find_foreign() has found HIP, CUDA without a row, or Level Zero together with a
// driver or an Intel GPU. Costs one load from memory.
bool foreign_possible();

// Returns the owner of foreign memory, such as "an AMD GPU", by asking each library that
// find_foreign() has found; null for other memory. Memory that the host can access (pinned, shared
// or managed) is not foreign.
const char* foreign_owner(const void* pointer);

}  // namespace slimpi::device
