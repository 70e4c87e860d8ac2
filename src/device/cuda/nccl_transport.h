// SPDX-License-Identifier: BSD-3-Clause
// Links between the GPUs of a node by NCCL: only its sends and receives, so that the order of sums
// stays slimpi's own. Its communicators do not block, as a process that waits has MPI to serve.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

extern const NcclTransport kNcclTransport;

}  // namespace slimpi::device::cuda
