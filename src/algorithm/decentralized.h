// SPDX-License-Identifier: BSD-3-Clause
// decentralized: the program sums its model over the ranks and divides by their number N. The
// result of a call is N times the mean over a few peers only, so the cost of a call does not depend
// on the number of nodes. With a hierarchy, each node is one worker: the model of a node is the
// mean of the models of its ranks.
//
// With the mixing matrix W (inter/neighbor_exchange.h), and node j with k_j ranks whose inputs add
// up to X_j:
//   result_i = sum over j of (N * W_ij / k_j) * X_j, in the order of the nodes
// In the calls between two exchanges (SLIMPI_INTERVAL) it is N / k_i * X_i. SLIMPI_PEERS=all gives
// the plain sum.
//
// Cost: 4 n bytes sent to each peer (ring has 2 peers, shift_one 1).
// Error: float rounding only.
#pragma once
#include <memory_resource>
#include <vector>

#include "algorithm/algorithm.h"
#include "algorithm/node_frame.h"
#include "inter/neighbor_exchange.h"

namespace slimpi::algorithm {

// True if this call exchanges: every SLIMPI_INTERVAL-th call of its buffer does.
bool exchange_is_due(const comm::Call& call);

// The result of a call without an exchange: writes N times the mean of the node's ranks.
void keep_model(comm::Call& call, const NodeShard& shard);

// The ranks of a row's peers, in the row's order and in its memory.
std::pmr::vector<int> ranks_of(const inter::Mixing& row, const comm::InterNodeGroup& group);

// Reserves scratch memory for messages with `peers` peers in the plan's format, for the exact sum,
// and for the sums inside nodes.
Status reserve_for_peers(const comm::Call& call, int peers);

}  // namespace slimpi::algorithm
