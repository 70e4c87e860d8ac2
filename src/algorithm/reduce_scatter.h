// SPDX-License-Identifier: BSD-3-Clause
// The reduce-scatter of the hierarchical algorithms: an exact sum inside each node, a
// reduce-scatter between nodes in which every node's sum is encoded once, and inside a node the
// blocks of ranks that own no shard. comm/scatter.h says which rank makes which sum.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

Status run_reduce_scatter(comm::Call& call);

// Reserves the scratch memory that run_reduce_scatter needs.
Status reserve_reduce_scatter(const comm::Call& call);

}  // namespace slimpi::algorithm
