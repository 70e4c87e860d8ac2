// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/node_frame.h"

#include "comm/communicator.h"
#include "comm/scatter.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

bool works_in_node(const comm::Call& call) {
  const comm::Communicator& communicator = call.communicator;
  return !call.communicator.inter_node_group(call.plan.hierarchy).flat &&
         communicator.layout().node_ranks().size() > 1;
}

comm::Range own_shard(const comm::Call& call) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  if (group.shard_index < 0) return {};
  if (call.scatter != nullptr) return call.scatter->shards[std::size_t(group.shard_index)];
  return intra::shard_range(call.count, call.plan.format, group, group.shard_index);
}

Status sum_in_node(comm::Call& call) {
  if (!works_in_node(call)) return Status::ok;
  return intra::intra_reduce_scatter(call, call.communicator.inter_node_group(call.plan.hierarchy));
}

NodeShard node_shard(comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const bool inside = works_in_node(call);
  const comm::Range range = own_shard(call);
  const int ranks = inside ? int(communicator.layout().node_ranks().size()) : 1;
  return {communicator.inter_node_group(call.plan.hierarchy), range,
          (inside ? call.out : call.in) + range.first, call.out + range.first, ranks};
}

Status share_in_node(comm::Call& call) {
  if (!works_in_node(call)) return Status::ok;
  return intra::intra_all_gather(call, call.communicator.inter_node_group(call.plan.hierarchy));
}

Status find_residual(comm::Call& call, const comm::Range& shard, float** residual) {
  *residual = nullptr;
  if (!call.plan.error_feedback || call.state == nullptr) return Status::ok;
  return call.state->open({comm::StateArray::residual}, shard.count, call.location, call.stream,
                          call.communicator.statistics(), residual);
}

// Allocates the residual of this rank's shard, if the call has error feedback. A rank without a
// shard makes an empty residual, so that its state counts as having arrays: at the memory limit,
// all ranks must free the arrays of the same states (tensor_state.h).
Status reserve_residual(comm::Call& call) {
  float* residual = nullptr;
  return find_residual(call, own_shard(call), &residual);
}

}  // namespace slimpi::algorithm
