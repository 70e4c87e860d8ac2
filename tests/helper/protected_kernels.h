// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the protected device: the host's generic ones, queued.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::test {

// Every pointer given to them must be to device memory, or the program dies; those to encoded
// values, except those of buckets longer than this, to device or staging memory.
const kernels::Kernels& protected_kernels();
constexpr std::uint32_t kProtectedStagingBucket = 1024;

}  // namespace slimpi::test
