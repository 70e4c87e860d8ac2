// SPDX-License-Identifier: BSD-3-Clause
// The steps that decentralized.cpp and low_precision.cpp share. Both average the models of a few
// peers, where other algorithms sum over all ranks.
#pragma once
#include <memory_resource>
#include <vector>

#include "algorithm/node_frame.h"
#include "inter/neighbor_exchange.h"

namespace slimpi::algorithm {

// Returns whether this call exchanges with peers. Every SLIMPI_INTERVAL-th call of a tensor does.
bool exchange_is_due(const comm::Call& call);

// Writes the result of a call in which this worker (a node, or a rank if the hierarchy is flat)
// does not exchange with peers: the mean of its ranks' models, times the number of all ranks.
void keep_model(comm::Call& call, const NodeShard& shard);

// Returns the ranks of row.peers, in the same order and in the row's memory.
std::pmr::vector<int> ranks_of_peers(const inter::Mixing& row, const comm::InterNodeGroup& group);

// Reserves scratch memory for messages in the plan's format with `peers` peers, for the exact sum,
// and for the sums inside nodes.
Status reserve_for_peers(const comm::Call& call, int peers);

}  // namespace slimpi::algorithm
