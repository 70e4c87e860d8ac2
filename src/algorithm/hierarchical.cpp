// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hierarchical.h"

#include <algorithm>

#include "algorithm/bounded_exchange.h"
#include "algorithm/codec_choice.h"
#include "algorithm/error_check.h"
#include "algorithm/node_frame.h"
#include "algorithm/reduce_scatter.h"
#include "comm/communicator.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

Status find_residual(comm::Call& call, const comm::Range& shard, float** residual) {
  *residual = nullptr;
  if (!call.plan.error_feedback || call.state == nullptr) return Status::ok;
  return call.state->open({comm::StateArray::residual}, shard.count, call.location, call.stream,
                          call.communicator.statistics(), residual);
}

namespace {

Status exchange(comm::Call& call, const NodeShard& shard) {
  if (!shard.owned()) return Status::ok;
  float* residual = nullptr;
  SLIMPI_TRY(find_residual(call, shard.range, &residual));
  return inter::run_exchange(call, shard.group, shard.range, shard.in, shard.out, residual);
}

Status run_in_bound(comm::Call& call) {
  double rounding = 0;
  // Before the sum inside the node, which may overwrite the input.
  if (works_in_node(call)) SLIMPI_TRY(node_rounding(call, &rounding));
  return run_in_nodes(call, [&](const NodeShard& shard) {
    return run_bounded(call, shard.group, shard.range, shard.in, rounding);
  });
}

}  // namespace

Status run_hierarchical(comm::Call& call) {
  if (call.scatter != nullptr) return run_reduce_scatter(call);
  if (call.plan.max_error > 0) return run_in_bound(call);
  return run_in_nodes(call, [&](const NodeShard& shard) { return exchange(call, shard); });
}

// A rank without a shard makes an array of no elements; see tensor_state.h.
Status reserve_residual(comm::Call& call) {
  float* residual = nullptr;
  return find_residual(call, own_shard(call), &residual);
}

Status reserve_hierarchical(const comm::Call& call) {
  if (call.scatter != nullptr) return reserve_reduce_scatter(call);
  comm::Communicator& communicator = call.communicator;
  const comm::Plan& plan = call.plan;
  const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
  inter::Need most;
  if (group.shard_index >= 0) {
    const comm::Range shard = own_shard(communicator, plan, call.count);
    const auto make_room = [&](const kernels::Format& format) {
      const inter::Need need =
          inter::prepared_exchange(communicator, format, group, shard.count, call.device.staged)
              .need;
      most.bytes = std::max(most.bytes, need.bytes);
      most.partial = std::max(most.partial, need.partial);
    };
    make_room(plan.format);
    for (int codec = 0; plan.max_error > 0 && codec < kCodecs; ++codec)
      make_room(codec_at(plan.format, codec));
  }
  if (plan.max_error > 0) SLIMPI_TRY(reserve_bounded(call));
  SLIMPI_TRY(reserve_messages(call, most.bytes));
  if (most.partial != 0)
    SLIMPI_TRY(call.scratch.exchange_partial().reserve(call.location, device::Place::device,
                                                       most.partial, communicator.statistics()));
  return intra::reserve_node_sum(call, group);
}

const Functions functions::hierarchical = {.run = run_hierarchical,
                                           .reserve = reserve_hierarchical,
                                           .reserve_state = reserve_residual,
                                           .scatters = true};

}  // namespace slimpi::algorithm
