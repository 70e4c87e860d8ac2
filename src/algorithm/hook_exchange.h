// SPDX-License-Identifier: BSD-3-Clause
// The schedule for a user's codec: exact sums inside each node, a reduce-scatter and an all-gather
// between nodes, and the result to every rank of a node. The codec determines the length of each
// payload. The owner of a chunk decodes its own message, so all ranks have the same bytes.
//
// Cost: with M nodes, 2 (M-1) messages per segment and rank. Segments are not pipelined.
// Error: the compression error of each node's sum and of the total. With error feedback, both are
// added to the next call of the same buffer.
#pragma once
#include "algorithm/hook.h"
#include "algorithm/hook_messages.h"

namespace slimpi::algorithm {

// Sets *failure to the first failure of the hook on this rank. After a failure this rank still
// completes the schedule, because its peers wait for its messages. The call fails on all ranks.
Status run_hook_exchange(comm::Call& call, const Hook& hook, HookFailure* failure);

// Reserves the scratch memory of such a call, whose buffers are in host memory.
Status reserve_hook_exchange(const comm::Call& call, const Hook& hook);

}  // namespace slimpi::algorithm
