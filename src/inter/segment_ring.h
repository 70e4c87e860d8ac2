// SPDX-License-Identifier: BSD-3-Clause
// The messages with the segments that are in the pipeline of a pairwise exchange, or of one with
// neighbors: their buffers, requests and events. It owns the requests and events; the buffers are
// the context's scratch.
//
// The life of a segment's buffers, each state entered by one function:
//   posted     post: its receives are posted; peers may send
//   in use     stage_out, send, finish: messages leave and arrive
//   decoded    decoded: the last kernel that reads its messages is queued
//   free       recycle: that kernel is complete; they are posted for the segment `depth` later
#pragma once
#include <memory_resource>
#include <span>
#include <vector>

#include "inter/message_buffers.h"
#include "inter/pairwise.h"

namespace slimpi::inter {

class SegmentRing {
 public:
  // `ranks`: of the layout's members. `once`: kernels use each payload once.
  SegmentRing(const Context& context, const PairwiseLayout& layout, std::span<const int> ranks,
              comm::Range shard, bool once);

  // Posts all receives of a segment. Its buffers must be free. Peers may send much later; no send
  // ever waits for a receive that this rank posts only in answer to it.
  Status post(std::int64_t number);

  // After the kernel that writes a step's message was queued: the event of scatter_out (by round)
  // or of gather_out is complete when the message may be sent. wait_for_payload waits for it.
  Status stage_out(const Step& step);
  Status wait_for_payload(const Step& step);

  // Starts to send the message of a step, which wait_for_payload has passed.
  Status send(const Step& step);

  // Waits until the step's message has left and its other message has arrived; the kernel that
  // reads the latter may be queued then.
  Status finish(const Step& step);

  // Checks those messages of a segment that only the device has seen; see MessageBuffers::check.
  Status check(MessageKind message, std::int64_t number);

  // To be called when the last kernel that reads this segment's messages was queued.
  Status decoded(std::int64_t number, std::uint64_t bytes);
  Status recycle(std::int64_t number);

  // To be called at the end: copies may still run between device and staging memory, whose
  // next user may write there at once.
  Status finish_copies() { return streams_.finish(); }

  std::byte* payload(MessageKind message, std::int64_t number, int round) const {
    return buffers_.payload(layout_.buffer(message, number, round));
  }
  // The sum of gather_out, in host memory.
  std::byte* host_sum(std::int64_t number) const {
    return buffers_.host_payload(layout_.buffer(MessageKind::gather_out, number, 0));
  }
  std::span<mpi::Request> requests() { return requests_; }

 private:
  // The messages that a step sends and receives.
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
  const PairwiseLayout& layout_;
  const std::span<const int> ranks_;
  const comm::Range shard_;
  CopyStreams streams_;
  MessageBuffers buffers_;
  std::pmr::vector<mpi::Request> requests_;
  // By ring index; encoded_ also by round.
  std::pmr::vector<CopyStreams::Event> encoded_, summed_, decoded_;
};

}  // namespace slimpi::inter
