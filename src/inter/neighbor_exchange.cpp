// SPDX-License-Identifier: BSD-3-Clause
#include "inter/neighbor_exchange.h"

#include <algorithm>

#include "base/exceptions.h"
#include "base/round_up.h"
#include "inter/message_buffers.h"
#include "inter/segment_length.h"

namespace slimpi::inter {

namespace {

// In each step the stages work on consecutive segments: segment n is encoded in step n, sent,
// applied and recycled in the steps after it.
//
//   buffers    segment n uses those of ring index n modulo depth. Its own message is encoded only
//              after all sends of segment n - depth are complete. Its receives are posted when
//              segment n - depth was applied and its last kernel is complete, before segment n is
//              encoded.
//   progress   a rank waits for a peer's segment n only after it has sent its own and posted its
//              receives up to n. Take a rank that waits for the lowest n: all others wait for n or
//              a later one, so its peers have sent n and can receive it.
class NeighborExchange {
 public:
  NeighborExchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                   PeerCodec& codec)
      : context_(context),
        shard_(shard),
        ranks_(ranks),
        codec_(codec),
        exchange_(context.exchange),
        statistics_(context.statistics),
        streams_(context),
        staged_(context.device.staged),
        plan_(neighbor_segments(context.format, shard.count, int(ranks.size()), staged_)),
        buffers_(context, streams_, plan_.message, plan_.total / plan_.message, false),
        requests_(2 * std::size_t(plan_.depth) * ranks.size(), mpi::abi.request_null,
                  context.memory),
        encoded_(std::size_t(plan_.depth), context.memory),
        applied_(std::size_t(plan_.depth), context.memory),
        theirs_(ranks.size(), context.memory) {}

  Status run() {
    return exchange_.settle(caught([&] { return run_steps(); }), requests_);
  }

 private:
  Status run_steps();
  bool exists(std::int64_t number) const {
    return number >= 0 && std::uint64_t(number) < plan_.count;
  }
  comm::Range part(std::int64_t number) const {
    const std::uint64_t first = std::uint64_t(number) * plan_.elements;
    return {first, std::min(plan_.elements, shard_.count - first)};
  }
  std::size_t ring_index(std::int64_t number) const { return std::size_t(number % plan_.depth); }
  // Each segment in the pipeline has a row of message buffers: 0 is for this rank's message, 1 + i
  // for that of peer i.
  std::size_t place(std::int64_t number, std::size_t buffer) const {
    return ring_index(number) * (ranks_.size() + 1) + buffer;
  }
  mpi::Request& sent(std::int64_t number, std::size_t peer) {
    return requests_[ring_index(number) * ranks_.size() + peer];
  }
  mpi::Request& received(std::int64_t number, std::size_t peer) {
    return requests_[requests_.size() / 2 + ring_index(number) * ranks_.size() + peer];
  }
  comm::MessageHeader message(const comm::Range& part, int sender) const {
    return message_header(context_, shard_, part, sender);
  }
  Status post(std::int64_t number);
  Status encode(std::int64_t number);
  Status send(std::int64_t number);
  Status apply(std::int64_t number);
  Status recycle(std::int64_t number);

  const Context& context_;
  const comm::Range shard_;
  const std::span<const int> ranks_;
  PeerCodec& codec_;
  comm::PointToPoint& exchange_;
  Statistics& statistics_;
  CopyStreams streams_;
  const bool staged_;
  const NeighborSegments plan_;
  MessageBuffers buffers_;
  std::pmr::vector<mpi::Request> requests_;                 // to the peers, then from them
  std::pmr::vector<CopyStreams::Event> encoded_, applied_;  // by ring_index(number)
  std::pmr::vector<const std::byte*> theirs_;
};

// Posts the receives of a segment, whose buffers must be free.
Status NeighborExchange::post(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
    SLIMPI_TRY(exchange_.receive(ranks_[peer], comm::Tag::peers,
                                 buffers_.message(place(number, 1 + peer)), plan_.message,
                                 received(number, peer)));
  return Status::ok;
}

// The one message goes to all peers, so its buffer is free when the last of their sends is
// complete.
Status NeighborExchange::encode(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  const comm::Range part = this->part(number);
  {
    const Timed timed(statistics_, Stage::exchange, "send",
                      ranks_.size() * message_bytes(context_.format, part.count));
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
      SLIMPI_TRY(exchange_.wait(sent(number, peer)));
  }
  const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
  const std::size_t buffer = place(number, 0);
  codec_.encode(part, buffers_.payload(buffer));
  const comm::MessageHeader about = message(part, context_.rank);
  return buffers_.stage_out(buffer, about, &encoded_[ring_index(number)]);
}

Status NeighborExchange::send(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  SLIMPI_TRY(streams_.wait(encoded_[ring_index(number)]));
  const comm::Range part = this->part(number);
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
    SLIMPI_TRY(exchange_.send(ranks_[peer], comm::Tag::peers, buffers_.message(place(number, 0)),
                              message_bytes(context_.format, part.count), sent(number, peer)));
  return Status::ok;
}

// The peers' payloads are used in the order of `ranks`, whatever the order of arrival.
Status NeighborExchange::apply(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  const comm::Range part = this->part(number);
  const std::size_t bytes = message_bytes(context_.format, part.count);
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    std::size_t bytes_received = 0;
    {
      const Timed timed(statistics_, Stage::exchange, "receive", bytes);
      SLIMPI_TRY(exchange_.wait(received(number, peer), &bytes_received));
    }
    const std::size_t buffer = place(number, 1 + peer);
    theirs_[peer] = buffers_.payload(buffer);
    const comm::MessageHeader expected = message(part, ranks_[peer]);
    SLIMPI_TRY(buffers_.stage_in(buffer, bytes_received, expected));
  }
  const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
  codec_.apply(part, buffers_.payload(place(number, 0)), theirs_);
  return streams_.record(&applied_[ring_index(number)], 4 * part.count);
}

Status NeighborExchange::recycle(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  SLIMPI_TRY(streams_.wait(applied_[ring_index(number)]));
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer)
    SLIMPI_TRY(buffers_.check(place(number, 1 + peer), message(part(number), ranks_[peer])));
  return post(number + plan_.depth);
}

// On a staged device a step of lag between the stages lets kernels and copies complete without a
// wait.
Status NeighborExchange::run_steps() {
  const int lag = staged_ ? 1 : 0;
  for (std::int64_t number = 0; number < plan_.depth; ++number) SLIMPI_TRY(post(number));
  for (std::int64_t step = 0; step < std::int64_t(plan_.count) + 2 + 2 * lag; ++step) {
    SLIMPI_TRY(encode(step));
    SLIMPI_TRY(send(step - lag));
    SLIMPI_TRY(apply(step - 1 - lag));
    SLIMPI_TRY(recycle(step - 1 - 2 * lag));
  }
  const Timed timed(statistics_, Stage::exchange, "wait", 0);
  return exchange_.wait_all(requests_);
}

}  // namespace

Status run_neighbor_exchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                             PeerCodec& codec) {
  return NeighborExchange(context, shard, ranks, codec).run();
}

Status exchange_with_neighbors(comm::Call& call, comm::Range shard, std::span<const int> ranks,
                               PeerCodec& codec) {
  Streams streams;
  SLIMPI_TRY(find_streams(call, &streams));
  return run_neighbor_exchange(context_of(call, streams), shard, ranks, codec);
}

std::size_t neighbor_exchange_bytes(const kernels::Format& format, std::uint64_t count, int peers,
                                    bool staged) {
  return neighbor_segments(format, count, peers, staged).total;
}

}  // namespace slimpi::inter
