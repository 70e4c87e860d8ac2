// SPDX-License-Identifier: BSD-3-Clause
// Chooses which compiled copy of the host's loops runs.
#pragma once
#include "base/option_types.h"
#include "kernels/kernels.h"

namespace slimpi::kernels {

// Is this path built and can this CPU run it?
bool usable(CpuPath path);

// The table of a path; the best usable one for CpuPath::automatic. null if it is not usable.
const Kernels* cpu_kernels(CpuPath path);

}  // namespace slimpi::kernels
