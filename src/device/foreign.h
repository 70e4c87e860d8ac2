// SPDX-License-Identifier: BSD-3-Clause
// Memory of GPUs that slimpi has no row for: AMD's (HIP), Intel's (Level Zero), and NVIDIA's where
// slimpi's plugin is not installed, is not wanted, or finds the driver too old. Neither the host
// nor slimpi's kernels may touch it, so calls with such buffers go to MPI.
#pragma once

namespace slimpi::device {

// Looks for the libraries of these GPUs among those that the process has loaded; loads none. For
// load_plugins(), which knows when there are new ones. `cuda_row`: NVIDIA's memory has a row.
void find_foreign(bool cuda_row);

// Whether the process has loaded HIP or Level Zero; Level Zero counts where there is a GPU of
// Intel's, or it has a driver. Costs one load.
bool foreign_possible();

// Whose memory it is, such as "an AMD GPU"; null for all other memory. Asks each loaded library
// once. Memory that the host reaches, too (pinned, shared or managed), counts as the host's.
const char* foreign_owner(const void* pointer);

}  // namespace slimpi::device
