// SPDX-License-Identifier: BSD-3-Clause
// Code that decentralized.cpp and low_precision.cpp share: both average the models of a few peers
// where the other algorithms sum over all ranks.
#pragma once
#include <memory_resource>
#include <vector>

#include "algorithm/node_frame.h"
#include "inter/neighbor_exchange.h"

namespace slimpi::algorithm {

// Returns whether this call exchanges with peers, as every SLIMPI_INTERVAL-th call of its tensor
// does.
bool exchange_is_due(const comm::Call& call);

// Writes the result of a call in which this worker (a node, or a rank if the hierarchy is flat)
// exchanges with no peer: the mean of the models of the node's ranks, times the number of all
// ranks.
void keep_model(comm::Call& call, const NodeShard& shard);

// Returns the ranks of the peers in row.peers, in the same order. The list lies in the row's
// memory.
std::pmr::vector<int> ranks_of_peers(const inter::Mixing& row, const comm::InterNodeGroup& group);

// Reserves scratch memory for messages with `peers` peers in the plan's format, for the exact sum,
// and for the sums inside nodes.
Status reserve_for_peers(const comm::Call& call, int peers);

}  // namespace slimpi::algorithm
