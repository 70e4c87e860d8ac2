// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/hook_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory_resource>
#include <utility>
#include <vector>

#include "algorithm/hierarchical.h"
#include "algorithm/node_frame.h"
#include "base/exceptions.h"
#include "codec/message_header.h"
#include "comm/communicator.h"
#include "intra/intra_node.h"

namespace slimpi::algorithm {

namespace {

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// Bytes of a message buffer: header, payload, and guard bytes that detect an overrun by the hook.
std::size_t message_buffer_bytes(const Hook& hook) {
  return round_up(codec::kHeaderBytes + round_up(hook.most_bytes(), 4) + Hook::kGuardBytes, 64);
}

class HookRounds {
 public:
  HookRounds(comm::Call& call, const comm::InterNodeGroup& group, const Hook& hook,
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
        message_buffer_(message_buffer_bytes(hook)),
        memory_(call.scratch.hook_messages().data()),
        total_(call.scratch.hook_segments().data()),
        input_(total_ + hook.piece()),
        decoded_(input_ + hook.piece()),
        requests_(std::size_t(4 * group_size_), MPI_REQUEST_NULL, &call.scratch.objects) {}

  Status run(HookFailure* failure);

 private:
  // The message buffers: in the reduce-scatter one to and one from each member; in the all-gather
  // one from each member, and one with the finished segment, which goes to all.
  enum class Message { scatter_out, scatter_in, gather_in, gather_out };

  std::byte* buffer(Message kind, int member) const {
    const int within = kind == Message::gather_out ? 0 : member;
    return memory_ + std::size_t(int(kind) * group_size_ + within) * message_buffer_;
  }
  MPI_Request& request(Message kind, int member) {
    return requests_[std::size_t(int(kind) * group_size_ + member)];
  }
  int rank_of(int member) const { return group_.peers[std::size_t(member)]; }
  comm::Range piece(int member) const;  // the segment of the member's chunk in this step
  codec::Message message(const comm::Range& part, int member, std::uint64_t payload) const;

  Status step();
  Status post();
  Status encode(Message kind, int to, const comm::Range& part, const float* values,
                std::size_t* bytes);
  Status receive_stray(Message kind, int member, const comm::Range& part, float* out);
  Status sum(const comm::Range& part);
  void decode(const comm::Range& part, bool total, const std::byte* code, std::uint64_t bytes,
              float* out);
  void note(Status status);

  comm::Call& call_;
  const comm::InterNodeGroup& group_;
  const Hook& hook_;
  const comm::Range shard_;
  const float* in_;
  float *out_, *residual_;
  comm::Exchange& exchange_;
  Statistics& statistics_;
  const int group_size_, me_;
  const std::size_t message_buffer_;
  std::byte* memory_;
  float *total_, *input_, *decoded_;  // one segment each
  std::pmr::vector<MPI_Request> requests_;
  std::uint64_t first_ = 0;  // position of this step's segments in their chunks, in elements
  HookFailure failure_;      // the first one
};

comm::Range HookRounds::piece(int member) const {
  const comm::Range chunk =
      comm::chunk_of(shard_.count, group_size_, member, comm::chunk_alignment(call_.plan.format));
  if (first_ >= chunk.count) return {};
  return {chunk.first + first_, std::min(hook_.piece(), chunk.count - first_)};
}

codec::Message HookRounds::message(const comm::Range& part, int member,
                                   std::uint64_t payload) const {
  codec::Message message;
  message.first = shard_.first + part.first;
  message.count = part.count;
  message.call = call_.number;
  message.tensor = call_.state == nullptr ? 0 : call_.state->number;
  message.sender = std::uint32_t(rank_of(member));
  message.hook = true;
  message.payload = payload;
  return message;
}

void HookRounds::note(Status status) {
  if (failure_.status == Status::ok) failure_ = HookFailure::of(status);
}

void HookRounds::decode(const comm::Range& part, bool total, const std::byte* code,
                        std::uint64_t bytes, float* out) {
  const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
  note(hook_.decode(call_, {shard_.first + part.first, part.count, total}, code, bytes, out));
}

// Encodes the message to member `to`. If the hook failed, its payload size is kNoPayload.
Status HookRounds::encode(Message kind, int to, const comm::Range& part, const float* values,
                          std::size_t* bytes) {
  std::byte* const text = buffer(kind, to);
  std::byte* const code = text + codec::kHeaderBytes;
  const bool total = kind == Message::gather_out;
  std::uint64_t payload = 0;
  float* const lost = residual_ == nullptr ? nullptr : residual_ + part.first;
  if (lost != nullptr) {
    for (std::uint64_t i = 0; i < part.count; ++i) input_[i] = values[i] + lost[i];
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
  *bytes = codec::kHeaderBytes + (good ? round_up(payload, 4) : 0);
  if (good) std::memset(code + payload, 0, round_up(payload, 4) - payload);
  codec::write_header(text, message(part, me_, good ? payload : codec::kNoPayload));
  return Status::ok;
}

// Waits for the message of a member and decodes it. If the hook failed on the sender, there is no
// payload, and this rank records no failure: the sender reports it.
Status HookRounds::receive_stray(Message kind, int member, const comm::Range& part, float* out) {
  std::size_t received = 0;
  {
    const Timed timed(statistics_, Stage::exchange, "receive", message_buffer_);
    SLIMPI_TRY(exchange_.wait(request(kind, member), &received));
  }
  const std::byte* const text = buffer(kind, member);
  SLIMPI_TRY(codec::check_message(text, received, message(part, member, hook_.most_bytes())));
  const std::uint32_t payload = codec::payload_of(text);
  if (payload == codec::kNoPayload)
    std::memset(out, 0, part.count * sizeof(float));
  else
    decode(part, kind == Message::gather_in, text + codec::kHeaderBytes, payload, out);
  return Status::ok;
}

Status HookRounds::post() {
  const comm::Range mine = piece(me_);
  for (int member = 0; member < group_size_; ++member) {
    if (member == me_) continue;
    if (mine.count != 0)
      SLIMPI_TRY(exchange_.receive(rank_of(member), comm::Tag::scatter_reduce,
                                   buffer(Message::scatter_in, member), message_buffer_,
                                   request(Message::scatter_in, member)));
    if (piece(member).count != 0)
      SLIMPI_TRY(exchange_.receive(rank_of(member), comm::Tag::all_gather,
                                   buffer(Message::gather_in, member), message_buffer_,
                                   request(Message::gather_in, member)));
  }
  return Status::ok;
}

// Adds the values of all members for this rank's segment in rank order, its own without encoding,
// and sends the encoded sum to all members.
Status HookRounds::sum(const comm::Range& part) {
  for (int member = 0; member < group_size_; ++member) {
    const float* addend = in_ + part.first;
    if (member != me_) {
      SLIMPI_TRY(receive_stray(Message::scatter_in, member, part, decoded_));
      addend = decoded_;
    }
    if (member == 0)
      std::memcpy(total_, addend, part.count * sizeof(float));
    else
      for (std::uint64_t i = 0; i < part.count; ++i) total_[i] += addend[i];
  }
  std::size_t bytes = 0;
  SLIMPI_TRY(encode(Message::gather_out, me_, part, total_, &bytes));
  const std::byte* const text = buffer(Message::gather_out, me_);
  for (int member = 0; member < group_size_; ++member)
    if (member != me_)
      SLIMPI_TRY(exchange_.send(rank_of(member), comm::Tag::all_gather, text, bytes,
                                request(Message::gather_out, member)));
  if (const std::uint32_t payload = codec::payload_of(text); payload != codec::kNoPayload)
    decode(part, true, text + codec::kHeaderBytes, payload, out_ + part.first);
  return Status::ok;
}

Status HookRounds::step() {
  SLIMPI_TRY(post());
  for (int distance = 1; distance < group_size_; ++distance) {
    const int to = (me_ + distance) % group_size_;
    const comm::Range part = piece(to);
    if (part.count == 0) continue;
    std::size_t bytes = 0;
    SLIMPI_TRY(encode(Message::scatter_out, to, part, in_ + part.first, &bytes));
    SLIMPI_TRY(exchange_.send(rank_of(to), comm::Tag::scatter_reduce,
                              buffer(Message::scatter_out, to), bytes,
                              request(Message::scatter_out, to)));
  }
  if (const comm::Range mine = piece(me_); mine.count != 0) SLIMPI_TRY(sum(mine));
  for (int distance = 1; distance < group_size_; ++distance) {
    const int from = (me_ - distance + group_size_) % group_size_;
    if (const comm::Range part = piece(from); part.count != 0)
      SLIMPI_TRY(receive_stray(Message::gather_in, from, part, out_ + part.first));
  }
  const Timed timed(statistics_, Stage::exchange, "wait", 0);
  return exchange_.wait_all(requests_);
}

Status HookRounds::run(HookFailure* failure) {
  const std::uint64_t longest =
      comm::chunk_of(shard_.count, group_size_, 0, comm::chunk_alignment(call_.plan.format)).count;
  Status status = Status::ok;
  for (first_ = 0; first_ < longest && status == Status::ok; first_ += hook_.piece())
    status = caught([&] { return step(); });
  SLIMPI_TRY(exchange_.settle(status, requests_));
  *failure = std::move(failure_);
  return Status::ok;
}

}  // namespace

Status run_hook_rounds(comm::Call& call, const Hook& hook, HookFailure* failure) {
  return run_in_nodes(call, [&](const NodeShard& shard) {
    if (!shard.owned()) return Status::ok;
    float* residual = nullptr;
    SLIMPI_TRY(find_residual(call, shard.range, &residual));
    HookRounds rounds(call, shard.group, hook, shard.range, shard.in, residual);
    return rounds.run(failure);
  });
}

Status reserve_hook_rounds(const comm::Call& call, const Hook& hook) {
  comm::Communicator& communicator = call.communicator;
  const comm::InterNodeGroup& group = communicator.inter_node_group(call.plan.hierarchy);
  Statistics& statistics = communicator.statistics();
  const std::size_t bytes = 4 * group.peers.size() * message_buffer_bytes(hook);
  SLIMPI_TRY(call.scratch.hook_messages().reserve(call.location, device::Place::device, bytes,
                                                  statistics));
  SLIMPI_TRY(call.scratch.hook_segments().reserve(call.location, device::Place::device,
                                                  3 * hook.piece(), statistics));
  return intra::reserve_node_sum(call, group);
}

}  // namespace slimpi::algorithm
