// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_ring.h"

namespace slimpi::inter {

SegmentRing::SegmentRing(const Context& context, const SegmentedLayout& layout,
                         std::span<const int> ranks, comm::Range shard, PayloadUse use)
    : context_(context),
      layout_(layout),
      ranks_(ranks),
      shard_(shard),
      streams_(context),
      buffers_(context, streams_, layout.segments().message, layout.buffers(), use),
      requests_(layout.requests(), mpi::abi.request_null, context.memory),
      encoded_(std::size_t(layout.segments().depth) * std::size_t(layout.rounds()), context.memory),
      summed_(std::size_t(layout.segments().depth), context.memory),
      decoded_(std::size_t(layout.segments().depth), context.memory) {}

CopyStreams::Event& SegmentRing::event(const Step& step) {
  const std::size_t index = layout_.ring_index(step.number);
  // The sum of a segment is made once and sent to all members, so all rounds share one event.
  if (step.gather) return summed_[index];
  return encoded_[index * std::size_t(layout_.rounds()) + std::size_t(step.round)];
}

Status SegmentRing::receive(const Step& step) {
  if (layout_.received_in(step).count == 0) return Status::ok;
  const MessageKind message = received_by(step);
  // The receive accepts even the longest message, so that a message that is too long arrives and
  // check_message() can name its sender.
  return context_.exchange.receive(
      rank_of(layout_.from(step)), layout_.tag_of(step),
      buffers_.message(layout_.buffer(message, step.number, step.round)),
      layout_.segments().message, requests_[layout_.request(message, step)]);
}

Status SegmentRing::post(std::int64_t number) {
  // Post the receives of both phases, because a peer may be in the all-gather while this rank is in
  // the reduce-scatter.
  for (int round = 0; round < layout_.rounds(); ++round) {
    // Post them in the order in which peers send, because messages of one tag keep their order.
    SLIMPI_TRY(receive({false, number, round}));
    SLIMPI_TRY(receive({true, number, round}));
  }
  return Status::ok;
}

Status SegmentRing::stage_out(const Step& step) {
  if (context_.hook_bytes) return Status::ok;  // the codec has written the header
  return buffers_.stage_out(layout_.buffer(sent_by(step), step.number, step.round),
                            header(layout_.sent_in(step), layout_.me()), &event(step));
}

// Waits for the event of the step's message. On the host there is nothing to wait for, because a
// kernel has ended when its function returns.
Status SegmentRing::wait_for_payload(const Step& step) {
  return streams_.wait(event(step));
}

Status SegmentRing::send(const Step& step) {
  const MessageKind kind = sent_by(step);
  const std::byte* const message = buffers_.message(layout_.buffer(kind, step.number, step.round));
  const std::size_t bytes = context_.hook_bytes
                                ? comm::hook_message_bytes(message)
                                : message_bytes(context_.format, layout_.sent_in(step).count);
  return context_.exchange.send(rank_of(layout_.to(step)), layout_.tag_of(step), message, bytes,
                                requests_[layout_.request(kind, step)]);
}

Status SegmentRing::finish(const Step& step) {
  // Steps of the first and last cycles may have no segment (a negative number).
  if (step.number < 0) return Status::ok;
  if (const comm::Range sent = layout_.sent_in(step); sent.count != 0) {
    // When this send completes, segment number + depth may reuse the buffer.
    const Timed timed(context_.statistics, Stage::exchange, "send",
                      message_bytes(context_.format, sent.count));
    SLIMPI_TRY(context_.exchange.wait(requests_[layout_.request(sent_by(step), step)]));
  }
  const comm::Range part = layout_.received_in(step);
  if (part.count == 0) return Status::ok;
  const MessageKind message = received_by(step);
  std::size_t received = 0;
  {
    const Timed timed(context_.statistics, Stage::exchange, "receive",
                      message_bytes(context_.format, part.count));
    SLIMPI_TRY(context_.exchange.wait(requests_[layout_.request(message, step)], &received));
  }
  // The copy to the device need not wait for its kernels: the receive was posted only once the
  // kernels that read the earlier message in this buffer were complete.
  return buffers_.stage_in(layout_.buffer(message, step.number, step.round), received,
                           header(part, layout_.from(step)));
}

Status SegmentRing::check(MessageKind message, std::int64_t number) {
  // With checks_late(), MPI has received into device memory, where the headers could not be checked
  // on arrival. By now, copies of them are in host memory.
  for (int round = 0; round < layout_.rounds() && buffers_.checks_late(); ++round) {
    const Step step{message == MessageKind::gather_in, number, round};
    if (const comm::Range part = layout_.received_in(step); part.count != 0)
      SLIMPI_TRY(
          buffers_.check(layout_.buffer(message, number, round), header(part, layout_.from(step))));
  }
  return Status::ok;
}

Status SegmentRing::decoded(std::int64_t number, std::uint64_t bytes) {
  return streams_.record(&decoded_[layout_.ring_index(number)], bytes);
}

Status SegmentRing::recycle(std::int64_t number) {
  // If no later segment uses these buffers, nothing is posted, but the messages may still have to
  // be checked.
  const bool again = number + layout_.segments().depth < layout_.segment_count();
  if (number < 0 || !(again || buffers_.checks_late())) return Status::ok;
  // The kernels that read these buffers must be complete before MPI writes there again.
  SLIMPI_TRY(streams_.wait(decoded_[layout_.ring_index(number)]));
  SLIMPI_TRY(check(layout_.gathers() ? MessageKind::gather_in : MessageKind::scatter_in, number));
  return again ? post(number + layout_.segments().depth) : Status::ok;
}

}  // namespace slimpi::inter
