// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hierarchical.h"

#include <algorithm>

#include "algorithm/bounded_exchange.h"
#include "algorithm/codec_choice.h"
#include "comm/communicator.h"
#include "inter/schedule.h"
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

NodeShard shard_of(comm::Call& call) {
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

Status reserve_messages(const comm::Call& call, std::size_t bytes) {
  if (bytes == 0) return Status::ok;
  Statistics& statistics = call.communicator.statistics();
  SLIMPI_TRY(call.scratch.exchange_messages().reserve(call.location, device::Place::device, bytes,
                                                      statistics));
  if (!call.device.staged) return Status::ok;
  return call.scratch.exchange_staging().reserve(call.location, device::Place::staging, bytes,
                                                 statistics);
}

Status find_residual(comm::Call& call, const comm::Range& shard, float** residual) {
  *residual = nullptr;
  if (!call.plan.error_feedback || call.state == nullptr) return Status::ok;
  return call.state->open({comm::StateArray::residual}, shard.count, call.location, call.stream,
                          call.communicator.statistics(), residual);
}

namespace {

// Of the blocks of all ranks, each of which gets its own.
class ReduceScatter {
 public:
  explicit ReduceScatter(comm::Call& call)
      : call_(call),
        scatter_(*call.scatter),
        group_(call.communicator.inter_node_group(call.plan.hierarchy)),
        ordered_(reinterpret_cast<float*>(call.scratch.ordered.data())),
        block_(scatter_.blocks[std::size_t(call.communicator.rank())]),
        program_in_(call.in),
        program_out_(call.out) {}
  ~ReduceScatter() {
    call_.in = program_in_;
    call_.out = program_out_;
    call_.shards = {};
  }
  ReduceScatter(const ReduceScatter&) = delete;
  ReduceScatter& operator=(const ReduceScatter&) = delete;

  Status run();

 private:
  Status copy(float* to, const float* from, std::uint64_t count) {
    if (count == 0 || to == from) return Status::ok;
    return call_.device.copy(to, from, count * sizeof(float), call_.stream);
  }
  Status put_in_order();
  Status sum_in_node();
  Status exchange();
  Status share();

  comm::Call& call_;
  const comm::Scatter& scatter_;
  const comm::InterNodeGroup& group_;
  float* const ordered_;  // the vector in the exchange's order, where one is made
  const comm::Range block_;
  const float* const program_in_;
  float* const program_out_;
};

// The blocks in the exchange's order; then the call works in place there.
Status ReduceScatter::put_in_order() {
  if (scatter_.in_order) return Status::ok;
  for (std::size_t rank = 0; rank < scatter_.blocks.size(); ++rank) {
    const comm::Range& block = scatter_.blocks[rank];
    SLIMPI_TRY(copy(ordered_ + scatter_.places[rank], call_.in + block.first, block.count));
  }
  call_.in = ordered_;
  return Status::ok;
}

Status ReduceScatter::sum_in_node() {
  if (!works_in_node(call_)) return Status::ok;
  call_.out = ordered_;
  call_.shards = scatter_.shards;
  SLIMPI_TRY(intra::intra_reduce_scatter(call_, group_));
  call_.in = ordered_;
  return Status::ok;
}

// In place the result would lie across values that the kernel which makes it reads. There it goes
// to the memory of the ordered vector first.
Status ReduceScatter::exchange() {
  if (group_.shard_index < 0) return Status::ok;
  const comm::Range shard = own_shard(call_);
  const comm::Range chunk = scatter_.chunks[std::size_t(group_.index)];
  float* residual = nullptr;
  SLIMPI_TRY(find_residual(call_, shard, &residual));
  float* result = program_out_;
  if (scatter_.shared)
    result = ordered_ + chunk.first;
  else if (call_.in == program_out_ && chunk.first != 0)
    result = ordered_;
  SLIMPI_TRY(inter::run_scatter(call_, group_, call_.in + shard.first, result, residual));
  return result == ordered_ && !scatter_.shared ? copy(program_out_, result, chunk.count)
                                                : Status::ok;
}

// A chunk with the blocks of several ranks goes to all ranks of the node.
Status ReduceScatter::share() {
  if (!scatter_.shared) return Status::ok;
  call_.in = call_.out = ordered_;
  call_.shards = scatter_.node;
  SLIMPI_TRY(intra::intra_all_gather(call_, group_));
  return copy(program_out_, ordered_ + scatter_.places[std::size_t(call_.communicator.rank())],
              block_.count);
}

Status ReduceScatter::run() {
  SLIMPI_TRY(put_in_order());
  SLIMPI_TRY(sum_in_node());
  SLIMPI_TRY(exchange());
  return share();
}

// Floats of the ordered vector, or of a result that cannot be written where it belongs yet.
std::uint64_t ordered_floats(const comm::Call& call) {
  if (works_in_node(call) || !call.scatter->in_order) return call.count;
  return call.in == call.out ? call.scatter->blocks[std::size_t(call.communicator.rank())].count
                             : 0;
}

Status reserve_reduce_scatter(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  Statistics& statistics = communicator.statistics();
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  const auto reserve = [&](comm::Memory& memory, std::uint64_t floats) {
    return memory.reserve(call.location, device::Place::device, floats * sizeof(float), statistics);
  };
  if (call.copies_input) SLIMPI_TRY(reserve(call.scratch.colocated, call.count));
  if (const std::uint64_t floats = ordered_floats(call); floats != 0)
    SLIMPI_TRY(reserve(call.scratch.ordered, floats));
  if (group.shard_index >= 0) {
    const inter::Need need = inter::scatter_need(call, group);
    SLIMPI_TRY(reserve_messages(call, need.bytes));
    SLIMPI_TRY(call.scratch.exchange_partial().reserve(call.location, device::Place::device,
                                                       need.partial, statistics));
  }
  return intra::reserve_node_sum(call, group);
}

Status exchange(comm::Call& call, const NodeShard& shard) {
  if (!shard.owned()) return Status::ok;
  float* residual = nullptr;
  SLIMPI_TRY(find_residual(call, shard.range, &residual));
  return inter::run_exchange(call, shard.group, shard.range, shard.in, shard.out, residual);
}

}  // namespace

Status run_hierarchical(comm::Call& call) {
  if (call.scatter != nullptr) return ReduceScatter(call).run();
  if (call.plan.max_error > 0) return run_bounded(call);
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
    const comm::Range shard = own_shard(call);
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
