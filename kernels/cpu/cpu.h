// SPDX-License-Identifier: BSD-3-Clause
// Selects the table of the host's kernels, which are compiled once per instruction set.
#pragma once
#include "kernels/kernels.h"
#include "options/option_types.h"

namespace slimpi::kernels {

// Whether this path was built and this CPU can run it.
bool usable(CpuPath path);

// The table of a path; the best usable one for CpuPath::automatic. null if it is not usable.
const Kernels* cpu_kernels(CpuPath path);

}  // namespace slimpi::kernels
