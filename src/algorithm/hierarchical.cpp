// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hierarchical.h"

#include <algorithm>

#include "algorithm/bounded_exchange.h"
#include "algorithm/codec_choice.h"
#include "algorithm/node_frame.h"
#include "comm/communicator.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

Status exchange(comm::Call& call, const NodeShard& shard) {
  if (!shard.owned()) return Status::ok;
  float* residual = nullptr;
  SLIMPI_TRY(find_residual(call, shard.range, &residual));
  return inter::run_exchange(call, shard.group, shard.range, shard.in, shard.out, residual);
}

}  // namespace

comm::Verdict run_hierarchical(comm::Call& call) {
  if (call.scatter != nullptr) return run_reduce_scatter(call);
  if (call.gather != nullptr) return run_all_gather(call);
  if (call.plan.max_error > 0) return run_bounded(call);
  return run_in_nodes(call, [&](const NodeShard& shard) { return exchange(call, shard); });
}

Status reserve_hierarchical(const comm::Call& call) {
  if (call.scatter != nullptr) return reserve_reduce_scatter(call);
  if (call.gather != nullptr) return reserve_all_gather(call);
  comm::Communicator& communicator = call.communicator;
  const comm::Plan& plan = call.plan;
  const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
  inter::Need most;
  if (group.shard_index >= 0) {
    const comm::Range shard = own_shard(call);
    const auto include = [&](const kernels::Format& format) {
      const inter::Need need =
          inter::prepared_exchange(communicator, format, group, shard.count, call.device.staged)
              .need;
      most.bytes = std::max(most.bytes, need.bytes);
      most.partial = std::max(most.partial, need.partial);
    };
    include(plan.format);
    for (int codec = 0; plan.max_error > 0 && codec < kCodecs; ++codec)
      include(codec_at(plan.format, codec));
  }
  if (plan.max_error > 0) SLIMPI_TRY(reserve_bounded(call));
  SLIMPI_TRY(call.reserve_messages(most.bytes));
  if (most.partial != 0)
    SLIMPI_TRY(
        call.reserve(call.scratch.sums, device::Place::device, most.partial * sizeof(float)));
  return intra::reserve_node_sum(call, group);
}

const Functions functions::hierarchical = {.run = run_hierarchical,
                                           .reserve = reserve_hierarchical,
                                           .reserve_state = reserve_residual,
                                           .scatters = true};

}  // namespace slimpi::algorithm
