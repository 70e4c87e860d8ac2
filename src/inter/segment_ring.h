// SPDX-License-Identifier: BSD-3-Clause
// The messages of the groups of segments that are in the pipeline of a pairwise exchange: their
// buffers, requests and events. It owns the requests and events; the buffers are the context's
// scratch.
//
// The life of a group's buffers, each state entered by one function:
//   posted     post: its receives are posted; peers may send
//   in use     stage_out, send, finish: messages leave and arrive
//   decoded    decoded: the last kernel that reads its messages is queued
//   free       recycle: that kernel is complete; the buffers are posted for the group `depth` later
#pragma once
#include <memory_resource>
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

  // Posts all receives of a group. Its buffers must be free. Peers may send much later; no send
  // ever waits for a receive that this rank posts only in answer to it.
  Status post(std::int64_t number);

  // After the kernels that write a step's messages were queued: the event of scatter_out (by round)
  // or of gather_out is complete when the messages may be sent. wait_for_payload waits for it.
  Status stage_out(MessageKind message, const Step& step);
  Status wait_for_payload(MessageKind message, const Step& step);

  // Starts to send the messages of a step, which wait_for_payload has passed.
  Status send(const Step& step);

  // Waits until the step's messages have left and its other messages have arrived; the kernels that
  // read the latter may be queued then.
  Status finish(const Step& step);

  // Checks those messages of a group that only the device has seen; see MessageBuffers::check.
  Status check(MessageKind message, std::int64_t number);

  // To be called when the last kernel that reads this group's messages was queued.
  Status decoded(std::int64_t number, std::uint64_t bytes);
  Status recycle(std::int64_t number);

  // To be called at the end: copies may still run between device and staging memory, whose
  // next user may write there at once.
  Status finish_copies() { return streams_.finish(); }

  // Whether a group's payloads lie one behind the other from that of its first segment on; else
  // kernels work on each segment by itself.
  bool contiguous(std::int64_t number) const { return buffers_.contiguous() && !mapped(number); }
  std::byte* payload(MessageKind message, std::int64_t number, int round, int segment) const {
    return buffers_.payload(layout_.buffer(message, number, round) + std::size_t(segment),
                            mapped(number));
  }
  std::byte* host_payload(MessageKind message, std::int64_t number, int round, int segment) const {
    return buffers_.host_payload(layout_.buffer(message, number, round) + std::size_t(segment));
  }
  std::span<mpi::Request> requests() { return requests_; }

 private:
  Status post(MessageKind message, const Step& step, comm::Tag tag);
  mpi::Request& request(MessageKind message, const Step& step, int segment) {
    return requests_[layout_.request(message, step) + std::size_t(segment)];
  }
  bool mapped(std::int64_t number) const { return buffers_.mapped(layout_.most_segments(number)); }
  // Valid until the next call.
  std::span<const comm::MessageHeader> headers(const comm::Range& group, int sender);
  CopyStreams::Event& event(MessageKind message, const Step& step);
  int rank_of(int member) const { return group_.peers[std::size_t(member)]; }

  const Context& context_;
  const PairwiseLayout& layout_;
  const comm::InterNodeGroup& group_;
  const ChunkCodec& codec_;
  CopyStreams streams_;
  MessageBuffers buffers_;
  std::pmr::vector<mpi::Request> requests_;
  // By ring index; encoded_ also by round.
  std::pmr::vector<CopyStreams::Event> encoded_, summed_, decoded_;
  // Of one group: what headers() returns, and the bytes that arrived.
  std::pmr::vector<comm::MessageHeader> headers_;
  std::pmr::vector<std::size_t> received_;
};

}  // namespace slimpi::inter
