// SPDX-License-Identifier: BSD-3-Clause
// Adds the values of a node's ranks, in memory that the kernels of the device can read. All
// transports (transports.h) call these functions, and therefore yield the same bytes:
// add_in_order() for sums that are then exchanged between nodes, add_in_pairs() for ranks that
// share one node.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>

#include "device/device.h"

namespace slimpi::intra {

// Both functions queue work on the stream `on`. `addends` are in rank order, with `count` floats
// each. `out` may be one of the addends. `partial` is scratch memory.

// Adds in rank order: floats, or doubles if `format` has Codec::float64. `partial` has `count`
// floats, for the uncompressed sum so far where one kernel cannot take all addends.
void add_in_order(const device::DeviceStream& on, const kernels::Format& format,
                  std::span<const float* const> addends, std::uint64_t count, float* partial,
                  float* out);

// Adds in pairs of neighbors, like MPICH. `partial` has `stride` floats for each addend but the
// last. Lists of sums are allocated from `memory`.
void add_in_pairs(const device::DeviceStream& on, std::span<const float* const> addends,
                  std::uint64_t count, float* partial, std::uint64_t stride, float* out,
                  std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace slimpi::intra
