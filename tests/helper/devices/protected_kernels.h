// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the protected device: the generic ones of the host, called by queued work.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::test {

// Returns the kernels. The program is ended if a pointer that they get is not to device memory.
// Pointers to encoded values may also be to staging memory, unless buckets are longer than
// kProtectedStagingBucket.
const kernels::Kernels& protected_kernels();
constexpr std::uint32_t kProtectedStagingBucket = 1024;

}  // namespace slimpi::test
