// SPDX-License-Identifier: BSD-3-Clause
// The schedule around a user's codec: exact sums inside each node, a scatter-reduce and an
// all-gather between nodes with messages as long as the codec made them, the result to every rank
// of a node. The owner of a chunk decodes what it sent, so all ranks end with the same bytes.
//
// Cost: 2 (M-1) messages a piece and rank, one piece after the other.
// Error: what the codec loses of each node's sum and of the total; with error feedback both are
// added to the next call of the same buffer.
#pragma once
#include "algorithm/hook.h"

namespace slimpi::algorithm {

// *failure is the first failure of the hook on this rank. The schedule goes on to its end after
// one, so the ranks stay in step; the call is lost on all of them.
Status run_hook_rounds(comm::Call& call, const Hook& hook, Status* failure);

Status reserve_hook_rounds(comm::Communicator& communicator, const comm::Plan& plan,
                           const Hook& hook);

}  // namespace slimpi::algorithm
