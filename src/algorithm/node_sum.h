// SPDX-License-Identifier: BSD-3-Clause
// The exact work inside a node, around any exchange between nodes: before it, each rank that owns a
// slice gets its neighbours' sum of it; after it, every neighbour gets the finished slices.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// Slice of `count` elements that local rank `rail` owns; whole buckets.
Range slice_of(std::uint64_t count, const kernels::Format& format, const Rails& rails, int rail);

// Bytes of scratch that node_sum and node_share need in device and staging memory.
std::size_t node_bytes(const Layout& layout, const Rails& rails);

// out's own slice = the neighbours' in, added in rank order in fp32. Sends the other slices.
Status node_sum(Call& call, const Rails& rails);

// Every neighbour's out = the slices of their owners.
Status node_share(Call& call, const Rails& rails);

}  // namespace slimpi::algorithm
