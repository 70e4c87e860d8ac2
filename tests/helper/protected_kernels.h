// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the protected device: the host's generic ones, queued.
#pragma once
#include "kernels/kernels.h"

namespace slimpi::test {

// Every pointer given to them must be to device memory, or the program dies.
const kernels::Kernels& protected_kernels();

}  // namespace slimpi::test
