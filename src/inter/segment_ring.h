// SPDX-License-Identifier: BSD-3-Clause
// The messages of the segments that are in the pipeline of a pairwise exchange: their buffers,
// requests and events. It owns the requests and events; the buffers are the context's scratch.
//
// The life of a segment's buffers, each state entered by one function:
//   posted     post: its receives are posted; peers may send
//   in use     stage_out, send, finish: messages leave and arrive
//   decoded    decoded: the last kernel that reads its messages is queued
//   free       recycle: that kernel is complete; the buffers are posted for the segment `depth`
//   later
#pragma once
#include <span>
#include <vector>

#include "inter/chunk_codec.h"
#include "inter/message_buffers.h"
#include "inter/pairwise_layout.h"

namespace slimpi::inter {

class SegmentRing {
 public:
  SegmentRing(const Context& context, const PairwiseLayout& layout,
              const comm::InterNodeGroup& group, const ChunkCodec& codec);

  // Posts all receives of a segment. Its buffers must be free. Peers may send much later; no send
  // ever waits for a receive that this rank posts only in answer to it.
  Status post(std::int64_t number);

  // After the kernel that writes a message was queued: the event of scatter_out (by round) or of
  // gather_out is complete when the message may be sent. wait_for_payload waits for it.
  Status stage_out(Message message, const Step& step);
  Status wait_for_payload(Message message, const Step& step);

  // Starts to send the message of a step, which wait_for_payload has passed.
  Status send(const Step& step);

  // Waits until the step's message has left and its other message has arrived; the kernels that
  // read the latter may be queued then.
  Status finish(const Step& step);

  // Checks those messages of a segment that only the device has seen; see MessageBuffers::check.
  Status check(Message message, std::int64_t number);

  // To be called when the last kernel that reads this segment's messages was queued.
  Status decoded(std::int64_t number, std::uint64_t bytes);
  Status recycle(std::int64_t number);

  // To be called at the end: copies may still be under way between device and staging memory, whose
  // next user may write there at once.
  Status finish_copies() { return streams_.finish(); }

  std::byte* payload(Message message, std::int64_t number, int round) const {
    return buffers_.piece(layout_.buffer(message, number, round));
  }
  std::byte* host_payload(Message message, std::int64_t number, int round) const {
    return buffers_.host_piece(layout_.buffer(message, number, round));
  }
  std::span<MPI_Request> requests() { return requests_; }

 private:
  Status post(Message message, const Step& step, comm::Tag tag);
  MPI_Request& request(Message message, const Step& step) {
    return requests_[layout_.request(message, step)];
  }
  CopyStreams::Event& event(Message message, const Step& step);
  int rank_of(int member) const { return group_.peers[std::size_t(member)]; }

  const Context& context_;
  const PairwiseLayout& layout_;
  const comm::InterNodeGroup& group_;
  const ChunkCodec& codec_;
  CopyStreams streams_;
  MessageBuffers buffers_;
  std::vector<MPI_Request> requests_;
  // By ring index; encoded_ also by round.
  std::vector<CopyStreams::Event> encoded_, summed_, decoded_;
};

}  // namespace slimpi::inter
