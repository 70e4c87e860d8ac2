// SPDX-License-Identifier: BSD-3-Clause
// Selects the host's kernels: each instruction set has a copy of all of them, and the process uses
// the best copy that its processor can run.
#pragma once
#include "kernels/kernels.h"

namespace slimpi {

// The instruction sets that SLIMPI_CPU names; `automatic` is the fastest one built that this CPU
// can run.
enum class CpuPath { automatic, generic, avx2, avx512 };

}  // namespace slimpi

namespace slimpi::kernels {

// Returns whether this path was built and this CPU can run it.
bool usable(CpuPath path);

// Returns the kernels of a path, or null if the path is not usable.
const Kernels* cpu_kernels(CpuPath path);

}  // namespace slimpi::kernels
