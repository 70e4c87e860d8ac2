// SPDX-License-Identifier: BSD-3-Clause
// The steps in which a reduce-scatter differs from an allreduce: it is the first phase alone. The
// sum of each node is encoded once, and the blocks of ranks that own no shard go to them inside the
// node. comm::Scatter says which rank makes which sum.
#pragma once
#include "comm/call.h"

namespace slimpi::algorithm {

Status run_reduce_scatter(comm::Call& call);

// Reserves the scratch memory that run_reduce_scatter() needs for the call's plan and count.
Status reserve_reduce_scatter(const comm::Call& call);

}  // namespace slimpi::algorithm
