// SPDX-License-Identifier: BSD-3-Clause
// Sums of the values of a node's ranks, in memory that the kernels of the device can read. All
// transports add by these functions, so the bytes do not depend on the transport: in rank order
// where the nodes' sums are exchanged then, in pairs where the ranks share one node.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>

#include "device/device.h"

namespace slimpi::intra {

// Both queue work on the stream. `addends` are the ranks' in rank order, `count` floats each; `out`
// may be one of them. `partial` is scratch.

// Adds in rank order. The sum is rounded to fp32 in between only where there are more addends than
// a kernel takes at once. Scratch of `count` floats.
void add_in_order(const device::DeviceStream& on, std::span<const float* const> addends,
                  std::uint64_t count, float* partial, float* out);

// Adds in pairs of neighbors, the order of MPICH. Scratch of `stride` floats for each addend but
// the last. `memory` is for the list of sums.
void add_in_pairs(const device::DeviceStream& on, std::span<const float* const> addends,
                  std::uint64_t count, float* partial, std::uint64_t stride, float* out,
                  std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace slimpi::intra
