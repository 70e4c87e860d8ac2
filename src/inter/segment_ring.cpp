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
      requests_(layout.requests(), MPI_REQUEST_NULL),
      encoded_(std::size_t(layout.segments().depth) * std::size_t(layout.rounds())),
      summed_(std::size_t(layout.segments().depth)),
      decoded_(summed_) {}

CopyStreams::Event& SegmentRing::event(Message message, const Step& step) {
  const std::size_t index = layout_.ring_index(step.number);
  if (message == Message::gather_out) return summed_[index];
  return encoded_[index * std::size_t(layout_.rounds()) + std::size_t(step.round)];
}

Status SegmentRing::post(Message message, const Step& step, comm::Tag tag) {
  if (layout_.received_in(step).count == 0) return Status::ok;
  return context_.exchange.receive(
      rank_of(layout_.from(step)), tag,
      buffers_.message(layout_.buffer(message, step.number, step.round)),
      layout_.segments().message, request(message, step));
}

Status SegmentRing::post(std::int64_t number) {
  for (int round = 0; round < layout_.rounds(); ++round) {
    SLIMPI_TRY(post(Message::scatter_in, {false, number, round}, comm::Tag::scatter_reduce));
    SLIMPI_TRY(post(Message::gather_in, {true, number, round}, comm::Tag::all_gather));
  }
  return Status::ok;
}

Status SegmentRing::stage_out(Message message, const Step& step) {
  return buffers_.stage_out(layout_.buffer(message, step.number, step.round),
                            codec_.header(layout_.sent_in(step), layout_.me()),
                            &event(message, step));
}

Status SegmentRing::wait_for_payload(Message message, const Step& step) {
  return streams_.wait(event(message, step));
}

Status SegmentRing::send(const Step& step) {
  const Message message = step.gather ? Message::gather_out : Message::scatter_out;
  return context_.exchange.send(
      rank_of(layout_.to(step)), step.gather ? comm::Tag::all_gather : comm::Tag::scatter_reduce,
      buffers_.message(layout_.buffer(message, step.number, step.round)),
      message_bytes(context_.format, layout_.sent_in(step).count), request(message, step));
}

Status SegmentRing::finish(const Step& step) {
  if (step.number < 0) return Status::ok;
  if (MPI_Request& sent = request(step.gather ? Message::gather_out : Message::scatter_out, step);
      sent != MPI_REQUEST_NULL) {
    const Timed timed(context_.statistics, Stage::exchange, "send",
                      message_bytes(context_.format, layout_.sent_in(step).count));
    SLIMPI_TRY(context_.exchange.wait(sent));
  }
  const comm::Range part = layout_.received_in(step);
  if (part.count == 0) return Status::ok;
  const Message message = step.gather ? Message::gather_in : Message::scatter_in;
  std::size_t received = 0;
  {
    const Timed timed(context_.statistics, Stage::exchange, "receive",
                      message_bytes(context_.format, part.count));
    SLIMPI_TRY(context_.exchange.wait(request(message, step), &received));
  }
  // The copy to the device does not wait for its kernels. That is safe: the receive was posted only
  // when the kernels that read this buffer before were complete.
  return buffers_.stage_in(layout_.buffer(message, step.number, step.round), received,
                           codec_.header(part, layout_.from(step)));
}

Status SegmentRing::check(Message message, std::int64_t number) {
  for (int round = 0; round < layout_.rounds() && buffers_.checks_late(); ++round) {
    const Step step{message == Message::gather_in, number, round};
    if (const comm::Range part = layout_.received_in(step); part.count != 0)
      SLIMPI_TRY(buffers_.check(layout_.buffer(message, number, round),
                                codec_.header(part, layout_.from(step))));
  }
  return Status::ok;
}

Status SegmentRing::decoded(std::int64_t number, std::uint64_t bytes) {
  return streams_.record(&decoded_[layout_.ring_index(number)], bytes);
}

Status SegmentRing::recycle(std::int64_t number) {
  const bool again = number + layout_.segments().depth < layout_.steps().segments();
  if (number < 0 || !(again || buffers_.checks_late())) return Status::ok;
  SLIMPI_TRY(streams_.wait(decoded_[layout_.ring_index(number)]));
  SLIMPI_TRY(check(Message::gather_in, number));
  return again ? post(number + layout_.segments().depth) : Status::ok;
}

}  // namespace slimpi::inter
