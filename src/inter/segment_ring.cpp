// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_ring.h"

namespace slimpi::inter {

SegmentRing::SegmentRing(const Context& context, const PairwiseLayout& layout,
                         const comm::InterNodeGroup& group, const ChunkCodec& codec)
    : context_(context),
      layout_(layout),
      group_(group),
      codec_(codec),
      streams_(context),
      buffers_(context, streams_, layout.segments().message, layout.buffers()),
      requests_(layout.requests(), mpi::abi.request_null, context.memory),
      encoded_(std::size_t(layout.segments().depth) * std::size_t(layout.rounds()), context.memory),
      summed_(std::size_t(layout.segments().depth), context.memory),
      decoded_(std::size_t(layout.segments().depth), context.memory),
      headers_(std::size_t(layout.segments().group), context.memory),
      received_(std::size_t(layout.segments().group), context.memory) {}

CopyStreams::Event& SegmentRing::event(MessageKind message, const Step& step) {
  const std::size_t index = layout_.ring_index(step.number);
  // A sum is made once and goes to all members, so all rounds share its event.
  if (message == MessageKind::gather_out) return summed_[index];
  return encoded_[index * std::size_t(layout_.rounds()) + std::size_t(step.round)];
}

std::span<const comm::MessageHeader> SegmentRing::headers(const comm::Range& group, int sender) {
  const int segments = layout_.segments_of(group);
  for (int i = 0; i < segments; ++i)
    headers_[std::size_t(i)] = codec_.header(layout_.segment(group, i), sender);
  return {headers_.data(), std::size_t(segments)};
}

Status SegmentRing::post(MessageKind message, const Step& step, comm::Tag tag) {
  const int segments = layout_.segments_of(layout_.received_in(step));
  const std::size_t first = layout_.buffer(message, step.number, step.round);
  for (int i = 0; i < segments; ++i)
    // Room for the longest message: a check of the header names the ranks of one that is too long.
    SLIMPI_TRY(context_.exchange.receive(rank_of(layout_.from(step)), tag,
                                         buffers_.message(first + std::size_t(i)),
                                         layout_.segments().message, request(message, step, i)));
  return Status::ok;
}

Status SegmentRing::post(std::int64_t number) {
  // Of both phases: a peer may be in the all-gather while this rank is in the reduce-scatter.
  for (int round = 0; round < layout_.rounds(); ++round) {
    // Group by group, as the peers send: messages of one tag keep their order.
    SLIMPI_TRY(post(MessageKind::scatter_in, {false, number, round}, comm::Tag::reduce_scatter));
    SLIMPI_TRY(post(MessageKind::gather_in, {true, number, round}, comm::Tag::all_gather));
  }
  return Status::ok;
}

Status SegmentRing::stage_out(MessageKind message, const Step& step) {
  return buffers_.stage_out(layout_.buffer(message, step.number, step.round),
                            headers(layout_.sent_in(step), layout_.me()), &event(message, step),
                            mapped(step.number));
}

// On the host a kernel has ended when its function returns, and there is nothing to wait for.
Status SegmentRing::wait_for_payload(MessageKind message, const Step& step) {
  return streams_.wait(event(message, step));
}

Status SegmentRing::send(const Step& step) {
  const MessageKind message = step.gather ? MessageKind::gather_out : MessageKind::scatter_out;
  const comm::Range group = layout_.sent_in(step);
  const std::size_t first = layout_.buffer(message, step.number, step.round);
  for (int i = 0; i < layout_.segments_of(group); ++i)
    SLIMPI_TRY(context_.exchange.send(
        rank_of(layout_.to(step)), step.gather ? comm::Tag::all_gather : comm::Tag::reduce_scatter,
        buffers_.message(first + std::size_t(i)),
        message_bytes(context_.format, layout_.segment(group, i).count),
        request(message, step, i)));
  return Status::ok;
}

Status SegmentRing::finish(const Step& step) {
  // A step of the first or last cycles that has no group.
  if (step.number < 0) return Status::ok;
  const comm::Range sent = layout_.sent_in(step);
  for (int i = 0; i < layout_.segments_of(sent); ++i) {
    // A send that is complete also frees its buffer for the group `depth` later.
    const Timed timed(context_.statistics, Stage::exchange, "send",
                      message_bytes(context_.format, layout_.segment(sent, i).count));
    SLIMPI_TRY(context_.exchange.wait(
        request(step.gather ? MessageKind::gather_out : MessageKind::scatter_out, step, i)));
  }
  const comm::Range group = layout_.received_in(step);
  const int segments = layout_.segments_of(group);
  if (segments == 0) return Status::ok;
  const MessageKind message = step.gather ? MessageKind::gather_in : MessageKind::scatter_in;
  for (int i = 0; i < segments; ++i) {
    const Timed timed(context_.statistics, Stage::exchange, "receive",
                      message_bytes(context_.format, layout_.segment(group, i).count));
    SLIMPI_TRY(context_.exchange.wait(request(message, step, i), &received_[std::size_t(i)]));
  }
  // The copy to the device does not wait for its kernels. That is safe: the receives were posted
  // only when the kernels that read these buffers before were complete.
  return buffers_.stage_in(layout_.buffer(message, step.number, step.round),
                           {received_.data(), std::size_t(segments)},
                           headers(group, layout_.from(step)), mapped(step.number));
}

Status SegmentRing::check(MessageKind message, std::int64_t number) {
  // MPI received these messages into device memory. The copy of their headers is complete now.
  for (int round = 0; round < layout_.rounds() && buffers_.checks_late(); ++round) {
    const Step step{message == MessageKind::gather_in, number, round};
    const std::span<const comm::MessageHeader> expected =
        headers(layout_.received_in(step), layout_.from(step));
    for (std::size_t i = 0; i < expected.size(); ++i)
      SLIMPI_TRY(buffers_.check(layout_.buffer(message, number, round) + i, expected[i]));
  }
  return Status::ok;
}

Status SegmentRing::decoded(std::int64_t number, std::uint64_t bytes) {
  return streams_.record(&decoded_[layout_.ring_index(number)], bytes);
}

Status SegmentRing::recycle(std::int64_t number) {
  // Without a later group there is nothing to post; only a late check may be left.
  const bool again = number + layout_.segments().depth < layout_.steps().groups();
  if (number < 0 || !(again || buffers_.checks_late())) return Status::ok;
  // The kernels that read these buffers must be complete before MPI writes there again.
  SLIMPI_TRY(streams_.wait(decoded_[layout_.ring_index(number)]));
  SLIMPI_TRY(check(MessageKind::gather_in, number));
  return again ? post(number + layout_.segments().depth) : Status::ok;
}

}  // namespace slimpi::inter
