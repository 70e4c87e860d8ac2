// SPDX-License-Identifier: BSD-3-Clause
// The steps around each exchange between nodes. First the ranks of a node add their values,
// uncompressed; then the owners of shards (parts of the vector) exchange the sums with other nodes;
// finally, all ranks of the node get the result. If there is no work inside the node (the node has
// one rank, or the hierarchy is flat), the frame consists of the exchange alone.
#pragma once
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// This rank's part in the exchange between nodes. Valid during the exchange.
struct NodeShard {
  const comm::InterNodeGroup& group;
  comm::Range range;  // in the call's vector; empty if this rank owns no shard
  const float* in;    // the sum of `ranks` ranks in this range; may be `out`
  float* out;         // receives the result of the range
  int ranks;          // the ranks of this node; 1 if no work is done inside nodes

  bool owned() const { return group.shard_index >= 0; }
};

// Returns whether the ranks of this rank's node add their values before the exchange.
bool works_in_node(const comm::Call& call);

// Returns the shard of the call's vector that this rank owns; empty if it owns none.
comm::Range own_shard(const comm::Call& call);

// The three steps of run_in_nodes(). sum_in_node() and share_in_node() do nothing unless
// works_in_node().
Status sum_in_node(comm::Call& call);
NodeShard node_shard(comm::Call& call);
Status share_in_node(comm::Call& call);

// Runs sum_in_node(), `exchange` and share_in_node(). `exchange` is called once on every rank, even
// on one that owns no shard, and must leave the result in its argument's `out`.
template <typename Exchange>
Status run_in_nodes(comm::Call& call, const Exchange& exchange) {
  SLIMPI_TRY(sum_in_node(call));
  SLIMPI_TRY(exchange(node_shard(call)));
  return share_in_node(call);
}

// Sets *residual to what earlier calls lost of `shard` by compression: an array in the call's
// tensor state, allocated at its first use. Without error feedback or without a state, sets it to
// null.
Status find_residual(comm::Call& call, const comm::Range& shard, float** residual);

// Allocates the array of find_residual() in advance, so that the exchange needs no memory for it.
Status reserve_residual(comm::Call& call);

}  // namespace slimpi::algorithm
