// SPDX-License-Identifier: BSD-3-Clause
#include "inter/reduce_scatter_allgather.h"

#include <algorithm>
#include <vector>

#include "inter/copy_streams.h"
#include "inter/local_reduction.h"
#include "inter/message_buffers.h"
#include "inter/overflow.h"
#include "inter/pairwise_steps.h"
#include "inter/pipeline_plan.h"

namespace slimpi::inter {

namespace {

// The message buffers of one segment: one per round for reduce-scatter out, reduce-scatter in and
// all-gather in; and one for the all-gather message that goes to all.
enum class Message { scatter_out, scatter_in, gather_in, gather_out };

class ReduceScatterAllgather {
 public:
  ReduceScatterAllgather(const Context& context, const comm::InterNodeGroup& group,
                         comm::Range shard, const float* in, float* out, float* residual);
  Status run() { return exchange_.settle(run_steps(), requests_); }

 private:
  Status run_steps();

  // The stages of one step, in this order. prepare queues the kernels that make its message; begin
  // sends it; finish completes its send and receive; decode queues the kernel that decodes what
  // came.
  Status prepare(const Step& step);
  Status begin(const Step& step);
  Status finish(const Step& step);
  Status decode(const Step& step);
  Status finish_next();
  Status prepare_until(std::int64_t index);
  Status decode_arrived();

  Status post(std::int64_t number);
  Status recycle(std::int64_t number);
  Status encode(const Step& step);
  Status sum(std::int64_t number);
  void add_up(std::int64_t number, const comm::Range& part);
  Status send(const Step& step, std::size_t message, const comm::Range& part, comm::Tag tag,
              Message buffer);
  Status check(Message buffer, std::int64_t number);
  // By ring index and round.
  CopyStreams::Event& encoded(const Step& step) {
    return encoded_[ring_index(step.number) * std::size_t(rounds_) + std::size_t(step.round)];
  }
  void count_overflow(std::int64_t number, std::uint64_t count);

  // What a step sends and receives, and where that is kept.
  comm::Range segment(int member, std::int64_t number) const;
  comm::Range sent_in(const Step& step) const {
    return segment(step.gather ? me_ : peers_in(step).to, step.number);
  }
  comm::Range received_in(const Step& step) const {
    return segment(step.gather ? peers_in(step).from : me_, step.number);
  }
  std::size_t weight(const Step& step) const;
  const StepPeers& peers_in(const Step& step) const { return steps_.peers_in(step.round); }
  int rank_of(int member) const { return group_.peers[std::size_t(member)]; }
  std::size_t ring_index(std::int64_t number) const {
    return std::size_t(number % segments_.depth);
  }
  std::size_t place(Message buffer, std::int64_t number, int round) const;
  std::byte* code(Message buffer, std::int64_t number, int round) const {
    return buffers_.piece(place(buffer, number, round));
  }
  MPI_Request& request(Message buffer, const Step& step);
  kernels::RandomStream random_stream(const comm::Range& part) const {
    return random_stream_for(context_, shard_, part);
  }
  codec::Message message(const comm::Range& part, int sender) const {
    return message_header(context_, shard_, part, sender);
  }
  float* residual(const comm::Range& part) const {
    return residual_ == nullptr ? nullptr : residual_ + part.first;
  }
  float* total(const comm::Range& part) const {
    return context_.totals == nullptr
               ? nullptr
               : context_.totals + (part.first - chunks_[std::size_t(me_)].first);
  }

  const Context& context_;
  const comm::InterNodeGroup& group_;
  const comm::Range shard_;
  const float* in_;
  float* out_;
  float* residual_;
  comm::PointToPoint& exchange_;
  Statistics& statistics_;
  const kernels::Kernels& kernels_;
  Overflow overflow_;
  const int group_size_, me_, rounds_;
  CopyStreams streams_;
  const bool staged_;
  const Segments segments_;
  const PairwiseSteps steps_;
  const std::int64_t ahead_;  // steps whose messages are prepared before they are due
  MessageBuffers buffers_;
  std::vector<comm::Range> chunks_;  // by member
  std::vector<MPI_Request> requests_;
  // By ring index; encoded_ also by round.
  std::vector<CopyStreams::Event> encoded_, summed_, decoded_;
  std::int64_t prepared_ = 0, finished_ = 0, decoded_steps_ = 0;  // steps before these are done
  std::size_t in_flight_ = 0;  // bytes of the steps that have begun and are not finished
};

ReduceScatterAllgather::ReduceScatterAllgather(const Context& context,
                                               const comm::InterNodeGroup& group, comm::Range shard,
                                               const float* in, float* out, float* residual)
    : context_(context),
      group_(group),
      shard_(shard),
      in_(in),
      out_(out),
      residual_(residual),
      exchange_(context.exchange),
      statistics_(context.statistics),
      kernels_(context.kernels),
      overflow_(context.format.codec, statistics_),
      group_size_(int(group.peers.size())),
      me_(group.index),
      rounds_(group_size_ - 1),
      streams_(context),
      staged_(context.device.staged),
      segments_(
          segments_for(context.format, shard.count, group_size_, context.segment_class, staged_)),
      steps_(group_size_, me_, segments_.longest, segments_.depth, staged_ ? 2 : 1),
      ahead_(staged_ ? 2 * rounds_ : 1),
      buffers_(context, streams_, segments_.message, segments_.total / segments_.message),
      requests_(std::size_t(segments_.depth) * 4 * std::size_t(rounds_), MPI_REQUEST_NULL),
      encoded_(std::size_t(segments_.depth) * std::size_t(rounds_)),
      summed_(std::size_t(segments_.depth)),
      decoded_(summed_) {
  for (int member = 0; member < group_size_; ++member)
    chunks_.push_back(comm::chunk_of(shard.count, group_size_, member, segments_.align));
}

comm::Range ReduceScatterAllgather::segment(int member, std::int64_t number) const {
  const comm::Range& chunk = chunks_[std::size_t(member)];
  if (number < 0 || std::uint64_t(number) * segments_.elements >= chunk.count) return {};
  const std::uint64_t first = std::uint64_t(number) * segments_.elements;
  return {chunk.first + first, std::min(segments_.elements, chunk.count - first)};
}

std::size_t ReduceScatterAllgather::place(Message buffer, std::int64_t number, int round) const {
  const std::size_t rounds = std::size_t(rounds_), slot = ring_index(number);
  const std::size_t within = buffer == Message::gather_out
                                 ? 3 * rounds
                                 : std::size_t(buffer) * rounds + std::size_t(round);
  return slot * (3 * rounds + 1) + within;
}

MPI_Request& ReduceScatterAllgather::request(Message buffer, const Step& step) {
  const std::size_t slot = ring_index(step.number);
  return requests_[(slot * 4 + std::size_t(buffer)) * std::size_t(rounds_) +
                   std::size_t(step.round)];
}

// Receives of a segment are posted long before the peer sends it, so that it never waits inside
// MPI.
Status ReduceScatterAllgather::post(std::int64_t number) {
  for (int round = 0; round < rounds_; ++round) {
    const int from = rank_of(steps_.peers_in(round).from);
    const Step scatter{false, number, round}, gather{true, number, round};
    if (received_in(scatter).count != 0)
      SLIMPI_TRY(exchange_.receive(from, comm::Tag::scatter_reduce,
                                   buffers_.message(place(Message::scatter_in, number, round)),
                                   segments_.message, request(Message::scatter_in, scatter)));
    if (received_in(gather).count != 0)
      SLIMPI_TRY(exchange_.receive(from, comm::Tag::all_gather,
                                   buffers_.message(place(Message::gather_in, number, round)),
                                   segments_.message, request(Message::gather_in, gather)));
  }
  return Status::ok;
}

// When a segment is decoded, its message buffers are used for the segment `depth` later: its
// receives are posted only then.
Status ReduceScatterAllgather::recycle(std::int64_t number) {
  const bool again = number + segments_.depth < steps_.segments();
  if (number < 0 || !(again || buffers_.checks_late())) return Status::ok;
  SLIMPI_TRY(streams_.wait(decoded_[ring_index(number)]));
  SLIMPI_TRY(check(Message::gather_in, number));
  return again ? post(number + segments_.depth) : Status::ok;
}

// Checks those messages of a segment that could not be checked when they arrived.
Status ReduceScatterAllgather::check(Message buffer, std::int64_t number) {
  for (int round = 0; round < rounds_ && buffers_.checks_late(); ++round) {
    const Step step{buffer == Message::gather_in, number, round};
    if (const comm::Range part = received_in(step); part.count != 0)
      SLIMPI_TRY(buffers_.check(place(buffer, number, round),
                                message(part, rank_of(peers_in(step).from))));
  }
  return Status::ok;
}

Status ReduceScatterAllgather::prepare(const Step& step) {
  if (step.number < 0) return Status::ok;
  if (!step.gather) return encode(step);
  return step.round == 0 ? sum(step.number) : Status::ok;
}

Status ReduceScatterAllgather::encode(const Step& step) {
  const comm::Range part = sent_in(step);
  if (part.count == 0) return Status::ok;
  const std::size_t buffer = place(Message::scatter_out, step.number, step.round);
  const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
  kernels_.encode(context_.format, random_stream(part), in_ + part.first, residual(part),
                  part.count, buffers_.piece(buffer), context_.stream());
  return buffers_.stage_out(buffer, message(part, context_.rank), &encoded(step));
}

Status ReduceScatterAllgather::sum(std::int64_t number) {
  const comm::Range part = segment(me_, number);
  if (part.count == 0) return Status::ok;
  const Timed timed(statistics_, Stage::decode, "sum", 4 * part.count);
  add_up(number, part);
  return buffers_.stage_out(place(Message::gather_out, number, 0), message(part, context_.rank),
                            &summed_[ring_index(number)]);
}

void ReduceScatterAllgather::add_up(std::int64_t number, const comm::Range& part) {
  if (!staged_) overflow_.keep(in_ + part.first, part.count, kernels_);
  const Owned piece{group_size_,       me_,        in_ + part.first,
                    residual(part),    part.count, code(Message::gather_out, number, 0),
                    out_ + part.first, total(part)};
  reduce_at_owner(context_, random_stream(part), piece, [&](int member) {
    return code(Message::scatter_in, number, steps_.round_from(member));
  });
}

void ReduceScatterAllgather::count_overflow(std::int64_t number, std::uint64_t count) {
  if (!overflow_.counts()) return;
  std::vector<const std::byte*> addends;
  for (int round = 0; round < rounds_; ++round)
    addends.push_back(buffers_.host_piece(place(Message::scatter_in, number, round)));
  overflow_.summed(buffers_.host_piece(place(Message::gather_out, number, 0)), addends, count);
}

Status ReduceScatterAllgather::begin(const Step& step) {
  const comm::Range part = sent_in(step);
  if (part.count == 0) return Status::ok;
  if (step.gather) {
    if (step.round == 0) {
      SLIMPI_TRY(streams_.wait(summed_[ring_index(step.number)]));
      SLIMPI_TRY(check(Message::scatter_in, step.number));
      count_overflow(step.number, part.count);
    }
    return send(step, place(Message::gather_out, step.number, 0), part, comm::Tag::all_gather,
                Message::gather_out);
  }
  const std::size_t buffer = place(Message::scatter_out, step.number, step.round);
  SLIMPI_TRY(streams_.wait(encoded(step)));
  overflow_.encoded(buffers_.host_piece(buffer), staged_ ? nullptr : in_ + part.first, part.count);
  return send(step, buffer, part, comm::Tag::scatter_reduce, Message::scatter_out);
}

Status ReduceScatterAllgather::send(const Step& step, std::size_t message, const comm::Range& part,
                                    comm::Tag tag, Message buffer) {
  return exchange_.send(rank_of(peers_in(step).to), tag, buffers_.message(message),
                        message_bytes(context_.format, part.count), request(buffer, step));
}

Status ReduceScatterAllgather::finish(const Step& step) {
  if (step.number < 0) return Status::ok;
  if (MPI_Request& sent = request(step.gather ? Message::gather_out : Message::scatter_out, step);
      sent != MPI_REQUEST_NULL) {
    const Timed timed(statistics_, Stage::exchange, "send", 4 * sent_in(step).count);
    SLIMPI_TRY(exchange_.wait(sent));
  }
  const comm::Range part = received_in(step);
  if (part.count == 0) return Status::ok;
  const Message buffer = step.gather ? Message::gather_in : Message::scatter_in;
  std::size_t received = 0;
  {
    const Timed timed(statistics_, Stage::exchange, "receive",
                      kernels::encoded_bytes(context_.format, part.count));
    SLIMPI_TRY(exchange_.wait(request(buffer, step), &received));
  }
  // The message buffer's previous message has been decoded: the receive was posted only after that.
  return buffers_.stage_in(place(buffer, step.number, step.round), received,
                           message(part, rank_of(peers_in(step).from)));
}

Status ReduceScatterAllgather::decode(const Step& step) {
  if (!step.gather || step.number < 0) return Status::ok;
  if (const comm::Range part = received_in(step); part.count != 0) {
    const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
    kernels_.decode(context_.format, code(Message::gather_in, step.number, step.round), part.count,
                    out_ + part.first, context_.stream());
  }
  if (step.round != rounds_ - 1) return Status::ok;
  SLIMPI_TRY(streams_.record(&decoded_[ring_index(step.number)], 4 * received_in(step).count));
  return recycle(staged_ ? step.number - 1 : step.number);
}

Status ReduceScatterAllgather::finish_next() {
  const Step next = steps_.at(finished_);
  SLIMPI_TRY(finish(next));
  in_flight_ -= weight(next);
  ++finished_;
  return Status::ok;
}

Status ReduceScatterAllgather::prepare_until(std::int64_t end) {
  for (; prepared_ < std::min(end, steps_.count()) && steps_.ready(prepared_, finished_);
       ++prepared_)
    SLIMPI_TRY(prepare(steps_.at(prepared_)));
  return Status::ok;
}

Status ReduceScatterAllgather::decode_arrived() {
  for (; decoded_steps_ < finished_; ++decoded_steps_)
    SLIMPI_TRY(decode(steps_.at(decoded_steps_)));
  return Status::ok;
}

// Bytes of a step's message on this rank's link, in the direction that carries more.
std::size_t ReduceScatterAllgather::weight(const Step& step) const {
  const std::uint64_t most = std::max(sent_in(step).count, received_in(step).count);
  return most == 0 ? 0 : message_bytes(context_.format, most);
}

Status ReduceScatterAllgather::run_steps() {
  for (std::int64_t number = 0; number < segments_.depth; ++number) SLIMPI_TRY(post(number));
  for (std::int64_t index = 0; index < steps_.count(); ++index) {
    const Step now = steps_.at(index);
    while (finished_ < index &&
           (in_flight_ + weight(now) > segments_.in_flight || !steps_.ready(index, finished_)))
      SLIMPI_TRY(finish_next());
    SLIMPI_TRY(prepare_until(index + 1));
    SLIMPI_TRY(begin(now));
    in_flight_ += weight(now);
    SLIMPI_TRY(prepare_until(index + 1 + ahead_));
    if (now.gather) SLIMPI_TRY(decode_arrived());
  }
  while (finished_ < steps_.count()) SLIMPI_TRY(finish_next());
  SLIMPI_TRY(decode_arrived());
  // The next user of the staging memory may write there at once, so all copies must be complete.
  SLIMPI_TRY(streams_.finish());
  return recycle(steps_.segments() - 1);
}

}  // namespace

Status run_reduce_scatter_allgather(const Context& context, const comm::InterNodeGroup& group,
                                    comm::Range shard, const float* in, float* out,
                                    float* residual) {
  ReduceScatterAllgather rounds(context, group, shard, in, out, residual);
  return rounds.run();
}

}  // namespace slimpi::inter
