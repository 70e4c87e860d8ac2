// SPDX-License-Identifier: BSD-3-Clause
// A reduce-scatter of the program. It is the first phase of an allreduce alone, so each node's sum
// is encoded once. comm::Scatter says which rank computes which part of the result. A rank that
// takes no part in the exchange between nodes gets its block from another rank of its node.
#include "algorithm/hierarchical.h"
#include "algorithm/node_frame.h"
#include "comm/communicator.h"
#include "comm/scatter.h"
#include "inter/schedule.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

class ReduceScatter {
 public:
  explicit ReduceScatter(comm::Call& call)
      : call_(call),
        scatter_(*call.scatter),
        group_(call.communicator.inter_node_group(call.plan.hierarchy)),
        ordered_(call.scratch.ordered.floats()),
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
  float* const ordered_;  // the vector in the exchange's order, if needed
  const comm::Range block_;
  const float* const program_in_;
  float* const program_out_;
};

// Copies the blocks to ordered_, which becomes the input of the call, if the exchange needs another
// order than the program's (comm/scatter.h).
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

// Runs the exchange between nodes. With MPI_IN_PLACE the result may overlap input that the kernel
// has still to read. The kernel then writes to ordered_, from where the result is copied.
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

// If chunks of this node hold blocks of several ranks, passes the chunks to all ranks of the node,
// and each copies its own block.
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

// Returns how many floats ordered_ must hold: the vector in the exchange's order, the sum inside
// the node, or a result that may overlap the input. 0 if none of them is needed.
std::uint64_t ordered_floats(const comm::Call& call) {
  if (works_in_node(call) || !call.scatter->in_order) return call.count;
  return call.in == call.out ? call.scatter->blocks[std::size_t(call.communicator.rank())].count
                             : 0;
}

}  // namespace

Status run_reduce_scatter(comm::Call& call) {
  return ReduceScatter(call).run();
}

Status reserve_reduce_scatter(const comm::Call& call) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  const auto reserve = [&](comm::Memory& memory, std::uint64_t floats) {
    return call.reserve(memory, device::Place::device, floats * sizeof(float));
  };
  if (call.copies_input) SLIMPI_TRY(reserve(call.scratch.colocated, call.count));
  if (const std::uint64_t floats = ordered_floats(call); floats != 0)
    SLIMPI_TRY(reserve(call.scratch.ordered, floats));
  if (group.shard_index >= 0) {
    const inter::Need need = inter::scatter_need(call, group);
    SLIMPI_TRY(call.reserve_messages(need.bytes));
    SLIMPI_TRY(reserve(call.scratch.sums, need.partial));
  }
  return intra::reserve_node_sum(call, group);
}

}  // namespace slimpi::algorithm
