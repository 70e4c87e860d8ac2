// SPDX-License-Identifier: BSD-3-Clause
// Compares the arguments of a call that may differ between ranks (the counts of blocks, and the
// memory of buffers), so that all ranks take the same path or fail together.
#pragma once
#include "base/status.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "comm/verdict.h"
#include "observe/activity.h"

namespace slimpi::call {

// Sets `count` (all elements) and `own_count` (this rank's block) of a reduce-scatter or
// all-gather. If a block has a negative count, or the sum overflows, sets `count` to a negative
// number.
void count_blocks(Request& request, int rank, int ranks);

// Returns the length of the count arrays of a call that MPI runs, on any communicator; 0 for an
// all-gather on an intercommunicator.
int ranks_with_blocks(const mpi::Api& api, const Request& request);

// Fails unless all ranks pass the same array of counts and, in an all-gather, each rank sends as
// many elements as its own block has. Collective for calls with an array; a call with a single
// count has nothing to compare. `init`: see subject().
Status agree_on_blocks(comm::Communicator& communicator, const Request& request, bool init);

// Leaves the call to MPI if the memory of its buffers requires it. All ranks get the same result,
// although their buffers may lie in different kinds of memory. MPI makes the call if
//   (1) a buffer of some rank lies on a GPU that slimpi cannot use (device/foreign.h),
//   (2) SLIMPI_BUFFERS excludes the result buffers (one rank's on a GPU decides for all), or
//   (3) all ranks share one node, and no buffer is on a GPU.
// In most jobs this costs one load from memory and no message, because there are several nodes,
// SLIMPI_BUFFERS is `any`, and no rank had loaded the library of a GPU of case (1) when the ranks
// compared their options.
comm::Verdict agree_on_memory(comm::Communicator& communicator, const Request& request);

// Returns whether MPI makes the sum because all ranks share one node. Decides without
// communication: true if no rank has a GPU, if the sum is short, or if slimpi never sums this type
// or collective on one node.
bool stays_on_node(const comm::Communicator& communicator, const Request& request);

// Returns the description of a call that ActiveCall records, for the trace and for messages. `init`
// says that the call is the init of a persistent sum. All steps of a call must use the same
// subject, because ranks compare theirs when one of them is late.
ActiveCall::Subject subject(const comm::Communicator& communicator, const Request& request,
                            bool init = false);

}  // namespace slimpi::call
