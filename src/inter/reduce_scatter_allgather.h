// SPDX-License-Identifier: BSD-3-Clause
// The exchange between nodes: scatter-reduce, then all-gather, two roundings however many take
// part.
//
// M ranks of a inter-node group divide a slice into M chunks and own one each. Every rank encodes
// the chunks that it does not own and sends each to its owner; the owner adds what it decodes to
// its own exact share, in rank order, encodes the sum, sends that to all and decodes it itself, so
// all end with the same bytes.
//
// Segments of the chunks flow through these steps one behind the other, in turns: in each, a rank
// has one message to send and one to receive (turns.h), and while they travel it encodes, adds or
// decodes for its node-local ranks in time. Full messages travel one at a time, because flows that
// meet on a link slow each other down by more than waiting costs; small ones travel together.
//
// Cost: 2 (M-1)/M * n * bits/8 bytes sent and received by every rank, 2 (M-1) messages a segment.
// Error: half a step of each sender's bucket plus half a step of the total's (nearest).
// Loses to Bruck_rounds.h where n is so small that 2 (M-1) messages cost more than the bytes.
#pragma once
#include "comm/call.h"
#include "inter/pipeline_plan.h"

namespace slimpi::inter {

// Sums `slice` of the call's vector over the inter-node group. `in` and `out` point at the slice;
// in == out is allowed. `residual` (of the slice's length, or null) is what compression lost
// before. Needs the memory that segments_for says, reserved in the communicator.
Status run_reduce_scatter_allgather(comm::Call& call, const comm::InterNodeGroup& group,
                                    comm::Range shard, const float* in, float* out,
                                    float* residual);

}  // namespace slimpi::inter
