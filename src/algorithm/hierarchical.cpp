// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hierarchical.h"

#include <algorithm>

#include "algorithm/bounded_exchange.h"
#include "algorithm/codec_choice.h"
#include "algorithm/error_check.h"
#include "comm/communicator.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {
Status find_residual(comm::Call& call, const comm::Range& shard, float** residual) {
  return comm::state_array(*call.state, "residual", shard.count, call.location, call.stream,
                           call.communicator.statistics(), residual);
}
}  // namespace

Status run_hierarchical(comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  const bool alone = group.flat || communicator.layout().node_ranks().size() == 1;
  const bool bounded = call.plan.max_error > 0;
  double rounding = 0;
  if (bounded && !alone) SLIMPI_TRY(node_rounding(call, &rounding));
  if (!alone) SLIMPI_TRY(intra::intra_reduce_scatter(call, group));
  const comm::Range shard = group.shard_index < 0 ? comm::Range{}
                                                  : intra::shard_range(call.count, call.plan.format,
                                                                       group, group.shard_index);
  const float* const in = (alone ? call.in : call.out) + shard.first;
  if (bounded) {
    SLIMPI_TRY(run_bounded(call, group, shard, in, rounding));
  } else if (group.shard_index >= 0) {
    float* residual = nullptr;
    if (call.plan.error_feedback && call.state != nullptr)
      SLIMPI_TRY(find_residual(call, shard, &residual));
    SLIMPI_TRY(inter::run_exchange(call, group, shard, in, call.out + shard.first, residual));
  }
  if (!alone) SLIMPI_TRY(intra::intra_all_gather(call, group));
  return Status::ok;
}

Status reserve_residual(comm::Call& call) {
  const comm::InterNodeGroup& group = call.communicator.inter_node_group(call.plan.hierarchy);
  if (!call.plan.error_feedback || group.shard_index < 0) return Status::ok;
  float* residual = nullptr;
  return find_residual(
      call, intra::shard_range(call.count, call.plan.format, group, group.shard_index), &residual);
}

Status reserve_hierarchical(comm::Communicator& communicator, const comm::Plan& plan,
                            std::uint64_t count, const device::Location& location) {
  const comm::InterNodeGroup& group = communicator.inter_node_group(plan.hierarchy);
  std::size_t bytes = intra::node_bytes(communicator, group);
  std::uint64_t partial = std::max<std::uint64_t>(64 << 10, intra::node_partial(communicator));
  if (group.shard_index >= 0) {
    const comm::Range shard = intra::shard_range(count, plan.format, group, group.shard_index);
    const auto make_room = [&](const kernels::Format& format) {
      const inter::Need need =
          inter::exchange_need(format, shard.count, int(group.peers.size()),
                               communicator.segment_class(), location.device->staged);
      bytes = std::max(bytes, need.bytes);
      partial = std::max(partial, need.partial);
    };
    make_room(plan.format);
    for (int codec = 0; plan.max_error > 0 && codec < kCodecs; ++codec)
      make_room(codec_at(plan.format, codec));
  }
  if (plan.max_error > 0) SLIMPI_TRY(reserve_bounded(communicator, plan, count, location));
  Statistics& statistics = communicator.statistics();
  const bool long_sums = communicator.size() > kernels::kMaxAddends;
  SLIMPI_TRY(
      communicator.scratch().messages.reserve(location, device::Place::device, bytes, statistics));
  if (location.device->staged)
    SLIMPI_TRY(communicator.scratch().staging.reserve(location, device::Place::staging, bytes,
                                                      statistics));
  if (long_sums)
    SLIMPI_TRY(communicator.scratch().partial.reserve(location, device::Place::device,
                                                      partial * sizeof(float), statistics));
  return Status::ok;
}

}  // namespace slimpi::algorithm
