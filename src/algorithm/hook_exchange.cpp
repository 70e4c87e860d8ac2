// SPDX-License-Identifier: BSD-3-Clause
// The schedule for a user's codec: exact sums inside each node, a reduce-scatter and an all-gather
// between nodes, and the result to every rank of a node. The codec determines the length of each
// payload; the header is slimpi's. The owner of a chunk decodes its own message, so all ranks have
// the same bytes. A failure of the hook does not end the exchange: the message is sent without a
// payload, and the first failure is kept until the ranks agree on it.
//
// Cost: with M nodes, 2 (M-1) messages per segment and rank. Segments are not pipelined.
// Error: the compression error of each node's sum and of the total. With error feedback, both are
// added to the next call of the same buffer.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "algorithm/hierarchical.h"
#include "algorithm/hook.h"
#include "algorithm/residual_limit.h"
#include "base/exceptions.h"
#include "base/round_up.h"
#include "comm/communicator.h"
#include "comm/message_header.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

// Bytes of a message buffer: header, payload, and guard bytes that detect an overrun by the hook.
std::size_t buffer_bytes(const Hook& hook) {
  return round_up(comm::kHeaderBytes + round_up(hook.most_bytes(), 4) + Hook::kGuardBytes, 64);
}

// How much of the residual is used.
float factor_of(const float* values, const float* lost, std::uint64_t count) {
  // The sums of squares: of a difference, here with itself, and the wanted one.
  double of_values[2], of_lost[2];
  const kernels::Kernels& kernels = *device::host().kernels();
  kernels.compare(values, values, count, of_values, nullptr);
  kernels.compare(lost, lost, count, of_lost, nullptr);
  return residual_factor(of_values[1], of_lost[1]);
}

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
        residual_(residual),
        exchange_(call.communicator.exchange()),
        statistics_(call.communicator.statistics()),
        group_size_(int(group.peers.size())),
        me_(group.index),
        message_buffer_(buffer_bytes(hook)),
        memory_(call.scratch.hook_messages().data()),
        total_(call.scratch.hook_segments().data()),
        input_(total_ + hook.piece()),
        decoded_(input_ + hook.piece()),
        requests_(std::size_t(4 * group_size_), mpi::abi.request_null, &call.scratch.objects) {}

  Status run(std::string* failure);

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
  void note(Status status) {
    if (failure_.empty()) failure_ = failure_of(status);
  }
  comm::MessageHeader header(const comm::Range& part, int sender, std::uint64_t payload) const;

  // `total`: of the finished sum; otherwise of one node's values.
  std::size_t encode(const comm::Range& part, bool total, const float* values, std::byte* buffer);
  void decode(const comm::Range& part, bool total, const std::byte* payload, std::uint64_t bytes,
              float* out);
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
  float* const residual_;  // of the shard; null without error feedback
  comm::Exchange& exchange_;
  Statistics& statistics_;
  const int group_size_, me_;
  const std::size_t message_buffer_;
  std::byte* memory_;
  float *const total_, *const input_, *const decoded_;  // one segment each
  std::string failure_;                                 // the hook's first one on this rank
  std::pmr::vector<mpi::Request> requests_;
  std::uint64_t first_ = 0;  // position of this step's segments in their chunks, in elements
};

comm::Range HookExchange::piece(int member) const {
  const comm::Range chunk =
      comm::chunk_of(shard_.count, group_size_, member, comm::chunk_alignment(call_.plan.format));
  if (first_ >= chunk.count) return {};
  return {chunk.first + first_, std::min(hook_.piece(), chunk.count - first_)};
}

comm::MessageHeader HookExchange::header(const comm::Range& part, int sender,
                                         std::uint64_t payload) const {
  comm::MessageHeader message;
  message.first = shard_.first + part.first;
  message.count = part.count;
  message.call = call_.number;
  message.tensor = call_.state == nullptr ? 0 : call_.state->number;
  message.sender = std::uint32_t(sender);
  message.hook = true;
  message.payload = payload;
  return message;
}

// Writes this rank's message to `buffer`, and the new residual. Returns its length in bytes. If the
// hook failed, the payload size in the header is kNoPayload. What is not finite stays out of the
// residual, where it would never leave again.
std::size_t HookExchange::encode(const comm::Range& part, bool total, const float* values,
                                 std::byte* buffer) {
  std::byte* const code = buffer + comm::kHeaderBytes;
  std::uint64_t payload = 0;
  float* const lost = residual_ == nullptr ? nullptr : residual_ + part.first;
  if (lost != nullptr) {
    device::host().kernels()->combine(1.0f, values, factor_of(values, lost, part.count), lost,
                                      part.count, input_, nullptr);
    values = input_;
  }
  Status status;
  {
    const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
    status =
        hook_.encode(call_, {shard_.first + part.first, part.count, total}, values, code, &payload);
    note(status);
  }
  const bool good = status == Status::ok;
  if (good && lost != nullptr) {
    decode(part, total, code, payload, decoded_);
    for (std::uint64_t i = 0; i < part.count; ++i) {
      const float left = values[i] - decoded_[i];
      if (std::isfinite(left)) lost[i] = left;
    }
  }
  if (good) std::memset(code + payload, 0, round_up(payload, 4) - payload);
  comm::write_header(buffer,
                     header(part, call_.communicator.rank(), good ? payload : comm::kNoPayload));
  return comm::kHeaderBytes + (good ? round_up(payload, 4) : 0);
}

void HookExchange::decode(const comm::Range& part, bool total, const std::byte* payload,
                          std::uint64_t bytes, float* out) {
  const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
  note(hook_.decode(call_, {shard_.first + part.first, part.count, total}, payload, bytes, out));
}

// Waits for the message of a member and decodes it: zeros where the hook failed on the sender,
// which reports that itself.
Status HookExchange::receive(Buffer kind, int member, const comm::Range& part, float* out) {
  std::size_t received = 0;
  {
    const Timed timed(statistics_, Stage::exchange, "receive", message_buffer_);
    SLIMPI_TRY(exchange_.wait(request(kind, member), &received));
  }
  const std::byte* const message = buffer(kind, member);
  SLIMPI_TRY(
      comm::check_message(message, received, header(part, rank_of(member), hook_.most_bytes())));
  const std::uint32_t payload = comm::payload_of(message);
  if (payload == comm::kNoPayload)
    std::memset(out, 0, part.count * sizeof(float));
  else
    decode(part, kind == Buffer::gather_in, message + comm::kHeaderBytes, payload, out);
  return Status::ok;
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
      SLIMPI_TRY(receive(Buffer::scatter_in, member, part, decoded_));
      addend = decoded_;
    }
    if (member == 0)
      std::memcpy(total_, addend, part.count * sizeof(float));
    else
      for (std::uint64_t i = 0; i < part.count; ++i) total_[i] += addend[i];
  }
  std::byte* const message = buffer(Buffer::gather_out, me_);
  const std::size_t bytes = encode(part, true, total_, message);
  for (int member = 0; member < group_size_; ++member)
    if (member != me_)
      SLIMPI_TRY(exchange_.send(rank_of(member), comm::Tag::all_gather, message, bytes,
                                request(Buffer::gather_out, member)));
  // Nothing is written where the hook failed.
  if (const std::uint32_t payload = comm::payload_of(message); payload != comm::kNoPayload)
    decode(part, true, message + comm::kHeaderBytes, payload, out_ + part.first);
  return Status::ok;
}

Status HookExchange::step() {
  SLIMPI_TRY(post());
  for (int distance = 1; distance < group_size_; ++distance) {
    const int to = (me_ + distance) % group_size_;
    const comm::Range part = piece(to);
    if (part.count == 0) continue;
    std::byte* const message = buffer(Buffer::scatter_out, to);
    const std::size_t bytes = encode(part, false, in_ + part.first, message);
    SLIMPI_TRY(exchange_.send(rank_of(to), comm::Tag::reduce_scatter, message, bytes,
                              request(Buffer::scatter_out, to)));
  }
  if (const comm::Range mine = piece(me_); mine.count != 0) SLIMPI_TRY(sum(mine));
  for (int distance = 1; distance < group_size_; ++distance) {
    const int from = (me_ - distance + group_size_) % group_size_;
    if (const comm::Range part = piece(from); part.count != 0)
      SLIMPI_TRY(receive(Buffer::gather_in, from, part, out_ + part.first));
  }
  const Timed timed(statistics_, Stage::exchange, "wait", 0);
  return exchange_.wait_all(requests_);
}

Status HookExchange::run(std::string* failure) {
  const std::uint64_t longest =
      comm::chunk_of(shard_.count, group_size_, 0, comm::chunk_alignment(call_.plan.format)).count;
  Status status = Status::ok;
  for (first_ = 0; first_ < longest && status == Status::ok; first_ += hook_.piece())
    status = caught([&] { return step(); });
  SLIMPI_TRY(exchange_.settle(status, requests_));
  *failure = failure_;
  return Status::ok;
}

}  // namespace

Status run_hook_exchange(comm::Call& call, const Hook& hook, std::string* failure) {
  return run_in_nodes(call, [&](const NodeShard& shard) {
    if (!shard.owned()) return Status::ok;
    float* residual = nullptr;
    SLIMPI_TRY(find_residual(call, shard.range, &residual));
    return HookExchange(call, shard.group, hook, shard.range, shard.in, residual).run(failure);
  });
}

Status reserve_hook_exchange(const comm::Call& call, const Hook& hook) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  Statistics& statistics = communicator.statistics();
  const std::size_t bytes = 4 * group.peers.size() * buffer_bytes(hook);
  SLIMPI_TRY(call.scratch.hook_messages().reserve(call.location, device::Place::device, bytes,
                                                  statistics));
  SLIMPI_TRY(call.scratch.hook_segments().reserve(call.location, device::Place::device,
                                                  3 * hook.piece(), statistics));
  return intra::reserve_node_sum(call, group);
}

}  // namespace slimpi::algorithm
