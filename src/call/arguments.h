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
// all-gather. Sets `count` to a negative number if a block has a negative count or the sum
// overflows.
void count_blocks(Request& request, int rank, int ranks);

// Returns the length of the count arrays of a call that MPI makes, on whatever communicator; 0 for
// an all-gather on an intercommunicator.
int ranks_with_blocks(const mpi::Api& api, const Request& request);

// Fails unless all ranks pass the same array of counts and, in an all-gather, each rank sends as
// many elements as its own block has. Collective for calls with an array; calls with a single count
// compare nothing here. `init`: see subject().
Status agree_on_blocks(comm::Communicator& communicator, const Request& request, bool init);

// Leaves the call to MPI if the memory of its buffers requires it, with the same result on all
// ranks, although their buffers may lie in different kinds of memory. There are three such cases:
//   (1) a buffer of some rank lies on a GPU that slimpi cannot use (device/foreign.h);
//   (2) SLIMPI_BUFFERS excludes the result buffers, where one rank's on a GPU decides for all;
//   (3) all ranks share one node, and no buffer is a GPU's.
// In most jobs no message is needed, and the function costs one load from memory: there are several
// nodes, SLIMPI_BUFFERS is `any`, and no rank had loaded the library of a GPU of case (1) when the
// ranks compared their options.
comm::Verdict agree_on_memory(comm::Communicator& communicator, const Request& request);

// Returns whether the ranks share one node and MPI makes the sum there without asking any rank
// about its buffers: no rank has a GPU, or the sum is short, or slimpi never makes sums of this
// type or collective on one node.
bool stays_on_node(const comm::Communicator& communicator, const Request& request);

// Returns the description of a call that ActiveCall records, for the trace and for messages.
// `init`: the call is the init of a persistent sum. All steps of a call must give the same subject,
// because ranks compare theirs when one of them is late.
ActiveCall::Subject subject(const comm::Communicator& communicator, const Request& request,
                            bool init = false);

}  // namespace slimpi::call
