// SPDX-License-Identifier: BSD-3-Clause
// Selects the table of the host's kernels, which are compiled once per instruction set.
#pragma once
#include "kernels/kernels.h"

namespace slimpi {

// The instruction sets; automatic is the best that was built and that this CPU can run.
enum class CpuPath { automatic, generic, avx2, avx512 };

}  // namespace slimpi

namespace slimpi::kernels {

// Whether this path was built and this CPU can run it.
bool usable(CpuPath path);

// The table of a path; null if it is not usable.
const Kernels* cpu_kernels(CpuPath path);

}  // namespace slimpi::kernels
