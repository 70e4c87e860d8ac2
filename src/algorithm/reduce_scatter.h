// SPDX-License-Identifier: BSD-3-Clause
// A reduce-scatter of the program: the first phase of an allreduce alone. The sum of each node is
// encoded once. A rank that takes no part in the exchange between nodes gets its block inside the
// node. comm::Scatter says which rank makes which sum.
#pragma once
#include "comm/call.h"

namespace slimpi::algorithm {

Status run_reduce_scatter(comm::Call& call);

// Reserves the scratch memory that run_reduce_scatter() needs for the call's plan and count.
Status reserve_reduce_scatter(const comm::Call& call);

}  // namespace slimpi::algorithm
