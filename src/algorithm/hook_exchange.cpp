// SPDX-License-Identifier: BSD-3-Clause
// The schedule for a user's codec: exact sums inside each node, a reduce-scatter and an all-gather
// between nodes, and the result to every rank of a node. The codec determines the length of each
// payload. The owner of a chunk decodes its own message, so all ranks have the same bytes.
//
// Cost: with M nodes, 2 (M-1) messages per segment and rank. Segments are not pipelined.
// Error: the compression error of each node's sum and of the total. With error feedback, both are
// added to the next call of the same buffer.
#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "algorithm/hierarchical.h"
#include "algorithm/hook_messages.h"
#include "algorithm/node_frame.h"
#include "base/exceptions.h"
#include "comm/communicator.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

// The steps of one shard. In step k all members exchange the k-th segment of every chunk, so a
// member whose chunk is shorter only sends and receives the others' in the last steps.
class HookExchange {
 public:
  HookExchange(comm::Call& call, const comm::InterNodeGroup& group, const Hook& hook,
               comm::Range shard, const float* in, float* residual)
      : call_(call),
        group_(group),
        hook_(hook),
        shard_(shard),
        in_(in),
        out_(call.out + shard.first),
        exchange_(call.communicator.exchange()),
        group_size_(int(group.peers.size())),
        me_(group.index),
        message_buffer_(HookMessages::buffer_bytes(hook)),
        memory_(call.scratch.hook_messages().data()),
        total_(call.scratch.hook_segments().data()),
        messages_(call, hook, shard, residual, total_ + hook.piece(), total_ + 2 * hook.piece()),
        requests_(std::size_t(4 * group_size_), mpi::abi.request_null, &call.scratch.objects) {}

  Status run(HookFailure* failure);

 private:
  // The message buffers: in the reduce-scatter one to and one from each member; in the all-gather
  // one from each member, and one with the finished segment, which goes to all.
  enum class Buffer { scatter_out, scatter_in, gather_in, gather_out };

  std::byte* buffer(Buffer kind, int member) const {
    const int within = kind == Buffer::gather_out ? 0 : member;
    return memory_ + std::size_t(int(kind) * group_size_ + within) * message_buffer_;
  }
  mpi::Request& request(Buffer kind, int member) {
    return requests_[std::size_t(int(kind) * group_size_ + member)];
  }
  int rank_of(int member) const { return group_.peers[std::size_t(member)]; }
  comm::Range piece(int member) const;  // the segment of the member's chunk in this step

  Status step();
  Status post();
  Status receive(Buffer kind, int member, const comm::Range& part, float* out);
  Status sum(const comm::Range& part);

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  const Hook& hook_;
  const comm::Range shard_;
  const float* in_;
  float* out_;
  comm::Exchange& exchange_;
  const int group_size_, me_;
  const std::size_t message_buffer_;
  std::byte* memory_;
  float* total_;  // one segment
  HookMessages messages_;
  std::pmr::vector<mpi::Request> requests_;
  std::uint64_t first_ = 0;  // position of this step's segments in their chunks, in elements
};

comm::Range HookExchange::piece(int member) const {
  const comm::Range chunk =
      comm::chunk_of(shard_.count, group_size_, member, comm::chunk_alignment(call_.plan.format));
  if (first_ >= chunk.count) return {};
  return {chunk.first + first_, std::min(hook_.piece(), chunk.count - first_)};
}

// Waits for the message of a member and decodes it.
Status HookExchange::receive(Buffer kind, int member, const comm::Range& part, float* out) {
  std::size_t received = 0;
  {
    const Timed timed(call_.communicator.statistics(), Stage::exchange, "receive", message_buffer_);
    SLIMPI_TRY(exchange_.wait(request(kind, member), &received));
  }
  return messages_.decode({part, kind == Buffer::gather_in}, rank_of(member), buffer(kind, member),
                          received, out);
}

Status HookExchange::post() {
  const comm::Range mine = piece(me_);
  for (int member = 0; member < group_size_; ++member) {
    if (member == me_) continue;
    if (mine.count != 0)
      SLIMPI_TRY(exchange_.receive(rank_of(member), comm::Tag::reduce_scatter,
                                   buffer(Buffer::scatter_in, member), message_buffer_,
                                   request(Buffer::scatter_in, member)));
    if (piece(member).count != 0)
      SLIMPI_TRY(exchange_.receive(rank_of(member), comm::Tag::all_gather,
                                   buffer(Buffer::gather_in, member), message_buffer_,
                                   request(Buffer::gather_in, member)));
  }
  return Status::ok;
}

// Adds the values of all members for this rank's segment in rank order, its own without encoding,
// and sends the encoded sum to all members.
Status HookExchange::sum(const comm::Range& part) {
  for (int member = 0; member < group_size_; ++member) {
    const float* addend = in_ + part.first;
    if (member != me_) {
      SLIMPI_TRY(receive(Buffer::scatter_in, member, part, messages_.decoded()));
      addend = messages_.decoded();
    }
    if (member == 0)
      std::memcpy(total_, addend, part.count * sizeof(float));
    else
      for (std::uint64_t i = 0; i < part.count; ++i) total_[i] += addend[i];
  }
  std::byte* const message = buffer(Buffer::gather_out, me_);
  const std::size_t bytes = messages_.encode({part, true}, total_, message);
  for (int member = 0; member < group_size_; ++member)
    if (member != me_)
      SLIMPI_TRY(exchange_.send(rank_of(member), comm::Tag::all_gather, message, bytes,
                                request(Buffer::gather_out, member)));
  messages_.decode_own({part, true}, message, out_ + part.first);
  return Status::ok;
}

Status HookExchange::step() {
  SLIMPI_TRY(post());
  for (int distance = 1; distance < group_size_; ++distance) {
    const int to = (me_ + distance) % group_size_;
    const comm::Range part = piece(to);
    if (part.count == 0) continue;
    std::byte* const message = buffer(Buffer::scatter_out, to);
    const std::size_t bytes = messages_.encode({part, false}, in_ + part.first, message);
    SLIMPI_TRY(exchange_.send(rank_of(to), comm::Tag::reduce_scatter, message, bytes,
                              request(Buffer::scatter_out, to)));
  }
  if (const comm::Range mine = piece(me_); mine.count != 0) SLIMPI_TRY(sum(mine));
  for (int distance = 1; distance < group_size_; ++distance) {
    const int from = (me_ - distance + group_size_) % group_size_;
    if (const comm::Range part = piece(from); part.count != 0)
      SLIMPI_TRY(receive(Buffer::gather_in, from, part, out_ + part.first));
  }
  const Timed timed(call_.communicator.statistics(), Stage::exchange, "wait", 0);
  return exchange_.wait_all(requests_);
}

Status HookExchange::run(HookFailure* failure) {
  const std::uint64_t longest =
      comm::chunk_of(shard_.count, group_size_, 0, comm::chunk_alignment(call_.plan.format)).count;
  Status status = Status::ok;
  for (first_ = 0; first_ < longest && status == Status::ok; first_ += hook_.piece())
    status = caught([&] { return step(); });
  SLIMPI_TRY(exchange_.settle(status, requests_));
  *failure = messages_.failure();
  return Status::ok;
}

}  // namespace

Status run_hook_exchange(comm::Call& call, const Hook& hook, HookFailure* failure) {
  return run_in_nodes(call, [&](const NodeShard& shard) {
    if (!shard.owned()) return Status::ok;
    float* residual = nullptr;
    SLIMPI_TRY(find_residual(call, shard.range, &residual));
    HookExchange rounds(call, shard.group, hook, shard.range, shard.in, residual);
    return rounds.run(failure);
  });
}

Status reserve_hook_exchange(const comm::Call& call, const Hook& hook) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  Statistics& statistics = communicator.statistics();
  const std::size_t bytes = 4 * group.peers.size() * HookMessages::buffer_bytes(hook);
  SLIMPI_TRY(call.scratch.hook_messages().reserve(call.location, device::Place::device, bytes,
                                                  statistics));
  SLIMPI_TRY(call.scratch.hook_segments().reserve(call.location, device::Place::device,
                                                  3 * hook.piece(), statistics));
  return intra::reserve_node_sum(call, group);
}

}  // namespace slimpi::algorithm
