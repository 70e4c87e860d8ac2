// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that exchange by a reduce-scatter and an all-gather between nodes: bytegrad, qsgd,
// packed, fp16, bf16 and allreduce. A reduce-scatter or an all-gather that the program calls is one
// half of this exchange, so it runs here, too.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// hierarchical.cpp

// Runs the sum inside the nodes (node_frame.h) and, by a schedule, between nodes. Also runs
// reduce-scatters, all-gathers and sums under SLIMPI_MAX_ERROR.
comm::Verdict run_hierarchical(comm::Call& call);

// Reserves the scratch memory of run_hierarchical() for the call's plan and count.
Status reserve_hierarchical(const comm::Call& call);

// reduce_scatter.cpp

Status run_reduce_scatter(comm::Call& call);

// Reserves the scratch memory of run_reduce_scatter() for the call's plan and count.
Status reserve_reduce_scatter(const comm::Call& call);

// all_gather.cpp

Status run_all_gather(comm::Call& call);

// Reserves the scratch memory of run_all_gather() for the call's plan and blocks.
Status reserve_all_gather(const comm::Call& call);

}  // namespace slimpi::algorithm
