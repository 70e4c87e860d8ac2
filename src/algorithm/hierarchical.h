// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that exchange by a reduce-scatter and an all-gather between nodes: bytegrad, qsgd,
// packed, fp16, bf16 and allreduce. The program's own reduce-scatters and all-gathers are one half
// of this exchange, so they run here, too.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// hierarchical.cpp

// Runs the sum inside the nodes (node_frame.h), and between nodes by a schedule. Also runs a
// reduce-scatter, an all-gather, and a sum under SLIMPI_MAX_ERROR.
comm::Verdict run_hierarchical(comm::Call& call);

// Reserves the scratch memory that run_hierarchical needs for the call's plan and count.
Status reserve_hierarchical(const comm::Call& call);

// reduce_scatter.cpp

Status run_reduce_scatter(comm::Call& call);

// Reserves the scratch memory that run_reduce_scatter() needs for the call's plan and count.
Status reserve_reduce_scatter(const comm::Call& call);

// all_gather.cpp

Status run_all_gather(comm::Call& call);

// Reserves the scratch memory that run_all_gather() needs for the call's plan and blocks.
Status reserve_all_gather(const comm::Call& call);

}  // namespace slimpi::algorithm
