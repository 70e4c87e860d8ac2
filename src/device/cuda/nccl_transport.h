// SPDX-License-Identifier: BSD-3-Clause
// Exchange between the GPUs of a node by NCCL. Only its sends and receives are used, so the order
// of sums stays slimpi's own. Its communicators are non-blocking, because a process that waits must
// let MPI make progress.
#pragma once
#include "device/device.h"

namespace slimpi::device::cuda {

extern const NcclTransport kNcclTransport;

}  // namespace slimpi::device::cuda
