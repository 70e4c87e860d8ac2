// SPDX-License-Identifier: BSD-3-Clause
// What only the host row has.
#pragma once
#include "base/option_types.h"
#include "base/status.h"

namespace slimpi::device {

// The code path of the host's kernels from now on; automatic until this is called, which is the
// best that the CPU can run. `unsupported`, and no change, for a path that this build lacks or this
// CPU cannot run.
Status use_cpu_path(CpuPath path);

}  // namespace slimpi::device
