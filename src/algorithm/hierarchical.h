// SPDX-License-Identifier: BSD-3-Clause
// The algorithms with a reduce-scatter and an all-gather between nodes: bytegrad and its family.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// Makes the sum in the frame of algorithm/node_frame.h, by a schedule between nodes.
Status run_hierarchical(comm::Call& call);

// Reserves the scratch memory that run_hierarchical needs for the call's plan and count.
Status reserve_hierarchical(const comm::Call& call);

}  // namespace slimpi::algorithm
