// SPDX-License-Identifier: BSD-3-Clause
// Compares the arguments of a call that may differ between ranks (counts of blocks, memory of
// buffers), so that all ranks take the same path or fail together.
#pragma once
#include "base/status.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "comm/verdict.h"
#include "observe/activity.h"

namespace slimpi::call {

// Sets `count` (all elements) and `own_count` (this rank's block) of a reduce-scatter or
// all-gather. If the count of a block is negative, or the sum of the counts overflows, `count` is
// negative.
void count_blocks(Request& request, int rank, int ranks);

// Returns how many counts the arrays of a call with blocks have that MPI makes on any communicator;
// 0 for an all-gather on an intercommunicator.
int ranks_with_blocks(const mpi::Api& api, const Request& request);

// Fails unless all ranks pass the same array of counts. Collective for calls with an array; other
// calls have one count, and nothing is compared. Also fails if this rank sends another number of
// elements in an all-gather than its own block has.
Status agree_on_blocks(comm::Communicator& communicator, const Request& request);

// Leaves the call to MPI if the memory of its buffers requires it; the same on all ranks.
// Buffers of the ranks may lie in different kinds of memory. The call goes to MPI in three cases:
// (1) A buffer of some rank lies in memory of a GPU that slimpi cannot use (device/foreign.h).
// (2) SLIMPI_BUFFERS excludes the result buffers. One result buffer on a GPU decides for all ranks.
// (3) All ranks share one node, and no buffer is a GPU's.
// The ranks exchange no message here if three conditions hold: there are several nodes,
// SLIMPI_BUFFERS is `any`, and no rank had loaded the library of a GPU of (1) when the ranks
// compared their options. Then this function usually costs one load from memory.
comm::Verdict agree_on_memory(comm::Communicator& communicator, const Request& request);

// Returns whether MPI makes the sum because all ranks share one node, and no rank has to be asked
// about its buffers. No rank is asked if no rank has a GPU, if the sum is short, or if slimpi never
// makes a sum of this type or collective on one node.
bool stays_on_node(const comm::Communicator& communicator, const Request& request);

// Returns the description of a call, for the trace and messages; an ActiveCall (the record of this
// thread's call) takes it. `init`: the call is the init of a persistent sum.
ActiveCall::Subject subject(const comm::Communicator& communicator, const Request& request,
                            bool init = false);

}  // namespace slimpi::call
