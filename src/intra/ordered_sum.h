// SPDX-License-Identifier: BSD-3-Clause
// A sum of what the ranks of a node have, in memory that the kernels of its device can read. The
// order of the additions is the same on all ways between the ranks, so the bytes are, too.
#pragma once
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace slimpi::intra {

// Both queue work on the stream. `addends` are the ranks' in rank order, `count` floats each; `out`
// may be one of them. `partial` is scratch.

// One after the other, rounded to fp32 in between only where there are more than the kernels take
// at once. Scratch of `count` floats.
void add_in_order(const device::Device& device, device::Stream* stream,
                  const std::vector<const float*>& addends, std::uint64_t count, float* partial,
                  float* out);

// As MPICH adds, in the calling thread's floating-point environment where the table of kernels can.
// Scratch of `stride` floats for each addend but the last. True: two NaNs met, and MPI's sum may
// be the other one.
bool add_in_pairs(const device::Device& device, device::Stream* stream,
                  const std::vector<const float*>& addends, std::uint64_t count, float* partial,
                  std::uint64_t stride, float* out);

}  // namespace slimpi::intra
