// SPDX-License-Identifier: BSD-3-Clause
// decentralized: the program sums its model over the ranks and divides by their number; what it
// gets is N times the mean over a few peers only, so a call costs the same however many nodes there
// are. With a hierarchy nodes are the workers: a node's model is the mean of its ranks'.
//
// With weights W (inter/mixing.h) over nodes of k_j ranks whose inputs add up to X_j:
//   result_i = sum over j of (N * W_ij / k_j) * X_j, in the nodes' order
// and between exchanges (SLIMPI_INTERVAL) N / k_i * X_i. SLIMPI_PEERS=all is the plain sum.
//
// Cost: 4 n bytes sent to each peer (ring 2, shift_one 1). Nothing but rounding is lost.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

Status run_decentralized(comm::Call& call);
Status reserve_decentralized(comm::Communicator& communicator, const comm::Plan& plan,
                             std::uint64_t count, const device::Device& device, const void* like);

// Whether this call is one of those that exchange: every SLIMPI_INTERVAL-th of its buffer.
bool exchange_is_due(const comm::Call& call);

// The call's model of this worker as it is: out's slice = N times the node's mean of it, from what
// intra_reduce_scatter left (or from in, on a node of one rank).
void keep_model(comm::Call& call, const comm::Range& shard, const float* in);

// Makes room for messages with `peers` peers in `format`, for the exact sum, and inside nodes.
Status reserve_for_peers(comm::Communicator& communicator, const comm::Plan& plan,
                         std::uint64_t count, int peers, const device::Device& device,
                         const void* like);

}  // namespace slimpi::algorithm
