// SPDX-License-Identifier: BSD-3-Clause
// The algorithms with a reduce-scatter and an all-gather between nodes: an exact sum inside each
// node, a reduce-scatter and an all-gather between nodes, and the result to every rank of a node.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

Status run_hierarchical(comm::Call& call);

// Reserves the scratch memory that run_hierarchical needs for the call's plan and count.
Status reserve_hierarchical(const comm::Call& call);

// The residual of `shard` in the call's tensor state, made at first use; null without error
// feedback or without a state.
Status find_residual(comm::Call& call, const comm::Range& shard, float** residual);

// Allocates the residual of error feedback in the call's tensor state.
Status reserve_residual(comm::Call& call);

}  // namespace slimpi::algorithm
