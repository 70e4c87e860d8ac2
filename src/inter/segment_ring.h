// SPDX-License-Identifier: BSD-3-Clause
// The messages of a pairwise or neighbor exchange: SegmentRing posts their receives, sends them,
// and waits for them. For each segment in the pipeline it owns requests and events, and uses
// buffers in the context's scratch memory. A later segment reuses all of these.
//
// A segment's buffers pass through these states, by these functions:
//   posted     post(): the receives are posted; peers may send
//   in use     stage_out(), send(), finish(): messages leave and arrive
//   decoded    decoded(): the last kernel that reads the messages is queued
//   free       recycle(): that kernel is complete; posts the buffers for the segment `depth` later
#pragma once
#include <memory_resource>
#include <span>
#include <vector>

#include "inter/message_buffers.h"
#include "inter/pairwise.h"

namespace slimpi::inter {

class SegmentRing {
 public:
  // `ranks` are those of the layout's members. `use`: see MessageBuffers.
  SegmentRing(const Context& context, const SegmentedLayout& layout, std::span<const int> ranks,
              comm::Range shard, PayloadUse use);

  // Posts all receives of a segment, whose buffers must be free. Receives are posted in advance and
  // never in answer to a send, so every send, however late, finds its receive.
  Status post(std::int64_t number);

  // Called once the kernel that writes a step's message is queued. stage_out() records an event
  // that is complete when the message can be sent, and wait_for_payload() waits for it.
  Status stage_out(const Step& step);
  Status wait_for_payload(const Step& step);

  // Begins to send the message of a step. wait_for_payload() must have returned.
  Status send(const Step& step);

  // Waits until the step's message has left and the message that the step receives has arrived.
  // Then the kernel that reads the received message may be queued.
  Status finish(const Step& step);

  // Checks the headers of a segment's messages of this kind, if MPI has received them into device
  // memory; see MessageBuffers::check.
  Status check(MessageKind message, std::int64_t number);

  // decoded() is called once the last kernel that reads this segment's messages is queued;
  // recycle() waits for that kernel and posts the buffers for a later segment.
  Status decoded(std::int64_t number, std::uint64_t bytes);
  Status recycle(std::int64_t number);

  // Waits for copies between device and staging memory. Called at the end, because the next user of
  // staging memory may write there at once.
  Status finish_copies() { return streams_.finish(); }

  std::byte* payload(MessageKind message, std::int64_t number, int round) const {
    return buffers_.payload(layout_.buffer(message, number, round));
  }
  // Returns the payload of gather_out, which is the encoded sum, in host memory.
  std::byte* host_sum(std::int64_t number) const {
    return buffers_.host_payload(layout_.buffer(MessageKind::gather_out, number, 0));
  }
  std::span<mpi::Request> requests() { return requests_; }

 private:
  // The kinds of messages that a step sends and receives.
  static MessageKind sent_by(const Step& step) {
    return step.gather ? MessageKind::gather_out : MessageKind::scatter_out;
  }
  static MessageKind received_by(const Step& step) {
    return step.gather ? MessageKind::gather_in : MessageKind::scatter_in;
  }
  Status receive(const Step& step);
  CopyStreams::Event& event(const Step& step);
  int rank_of(int member) const { return ranks_[std::size_t(member)]; }
  comm::MessageHeader header(const comm::Range& part, int member) const {
    return message_header(context_, shard_, part, rank_of(member));
  }

  const Context& context_;
  const SegmentedLayout& layout_;
  const std::span<const int> ranks_;
  const comm::Range shard_;
  CopyStreams streams_;
  MessageBuffers buffers_;
  std::pmr::vector<mpi::Request> requests_;
  // Events by ring index, those of encoded_ also by round.
  std::pmr::vector<CopyStreams::Event> encoded_, summed_, decoded_;
};

}  // namespace slimpi::inter
