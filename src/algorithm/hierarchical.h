// SPDX-License-Identifier: BSD-3-Clause
// The algorithms with a reduce-scatter and an all-gather between nodes: bytegrad and its family.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// Makes the sum: inside the nodes (node_frame.h), and between nodes by a schedule. Also makes a
// reduce-scatter, and a sum under SLIMPI_MAX_ERROR.
Status run_hierarchical(comm::Call& call);

// Reserves the scratch memory that run_hierarchical needs for the call's plan and count.
Status reserve_hierarchical(const comm::Call& call);

}  // namespace slimpi::algorithm
