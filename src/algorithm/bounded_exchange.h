// SPDX-License-Identifier: BSD-3-Clause
// The exchange between nodes under SLIMPI_MAX_ERROR: choose a codec by an estimate (budget.h),
// exchange, check the error (error_check.h), and where the check fails exchange again with a finer
// codec, at last with floats, which need no check. All ranks do the same.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// `in` is the node's sum of `slice`, this rank's; it may lie in call.out. `node_rounding` is what
// error_check.h says of it. Collective over the communicator, ranks without a inter-node group
// included.
Status run_bounded(comm::Call& call, const comm::InterNodeGroup& group, comm::Range shard,
                   const float* in, double node_rounding);

// Reserves the memory for it, beside what the exchange needs with every codec.
Status reserve_bounded(comm::Communicator& communicator, const comm::Plan& plan,
                       std::uint64_t count, const device::Device& device, const void* like);

}  // namespace slimpi::algorithm
