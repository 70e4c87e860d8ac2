// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the protected device: the host's generic ones, queued.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::test {

// Returns the kernels. Every pointer that they get must be to device memory, or the program dies.
// Pointers to encoded values may also be to staging memory, unless buckets are longer than
// kProtectedStagingBucket.
const kernels::Kernels& protected_kernels();
constexpr std::uint32_t kProtectedStagingBucket = 1024;

}  // namespace slimpi::test
