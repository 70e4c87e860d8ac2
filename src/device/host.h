// SPDX-License-Identifier: BSD-3-Clause
// Functions of the host row only.
#pragma once
#include "base/option_types.h"
#include "base/status.h"

namespace slimpi::device {

// Sets the code path of the host's kernels. Before the first call it is automatic: the best that
// the CPU can run. Returns `unsupported`, and changes nothing, for a path that this build lacks or
// this CPU cannot run.
Status use_cpu_path(CpuPath path);

}  // namespace slimpi::device
