// SPDX-License-Identifier: BSD-3-Clause
// The Bruck schedule of the inter-node exchange, which yields the same bytes as pairwise.cpp in
// log2(M) steps per phase for M nodes. Each rank owns a chunk of the shard, that is, it adds up
// this chunk. Ranks store and forward blocks without changing them: first the values for the owners
// of chunks, then the owners' sums (bruck.h).
//
// Cost for n floats: every rank sends about (log2(M) / 2 + 1) * n * bits/8 bytes, in 2 log2(M)
// messages, or more if they are long. That is slower than the pairwise exchange once the additional
// bytes cost more than the saved messages.
#include "inter/bruck.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/exceptions.h"
#include "base/round_up.h"
#include "comm/stream_wait.h"
#include "inter/chunk_reduction.h"
#include "inter/schedule.h"

namespace slimpi::inter {

namespace {

// Runs the exchange. Each step waits for its messages before the next one begins, so no memory is
// written while MPI sends from it, and one pair of requests suffices. MPI and the host use
// `staging_`, kernels use `memory_`. A rank forwards blocks without decoding or checking them.
class BruckExchange {
 public:
  BruckExchange(const Context& context, const BruckLayout& layout,
                const comm::InterNodeGroup& group, comm::Range shard, const float* in, float* out,
                float* residual)
      : context_(context),
        group_(group),
        exchange_(context.exchange),
        codec_(context, group, shard, layout.chunk(group.index).first, in, out, residual),
        layout_(layout),
        group_size_(int(group.peers.size())),
        bruck_(group_size_),
        me_(group.index),
        staged_(context.device.staged),
        memory_(context.messages),
        staging_(context.staging) {}

  Status run() {
    return exchange_.settle(caught([&] { return run_steps(); }), requests_);
  }

 private:
  Status run_steps();
  Status encode();
  Status scatter(int step);
  Status sum();
  Status gather(int step);
  Status decode();

  // The message that swap() sends to a member, and the one that it receives from another. A message
  // of 0 bytes is left out.
  struct Outgoing {
    int to;
    const std::byte* data;
    std::size_t bytes;
  };
  struct Incoming {
    int from;
    std::byte* data;
    std::size_t bytes;
  };
  Status swap(const Outgoing& out, const Incoming& in, comm::Tag tag);
  Status check(const std::byte* block, int owner, int sender);
  Status move(const char* name, std::byte* to, const std::byte* from, std::size_t bytes);

  const comm::Range& chunk(int member) const { return layout_.chunk(member); }
  std::size_t place(int number) const { return layout_.place(number); }
  // Returns the bytes of the finished sums of `blocks` consecutive members, from this rank on. Each
  // member has one block, the encoded sum of its chunk, without gaps between blocks.
  std::size_t gathered(int blocks) const { return layout_.bytes_from(me_, blocks); }
  int rank_of(int member) const { return group_.peers[std::size_t(member)]; }

  const Context& context_;
  const comm::InterNodeGroup& group_;
  comm::PointToPoint& exchange_;
  ChunkCodec codec_;
  const BruckLayout& layout_;
  const int group_size_;
  const BruckSteps bruck_;
  const int me_;
  const bool staged_;
  std::byte *memory_, *staging_;  // same layout; the same memory if not staged
  mpi::Request requests_[2] = {mpi::abi.request_null, mpi::abi.request_null};
};

// On a staged device (a GPU), copies between staging and device memory and waits for the copy. MPI
// always sends from staging memory, even if it is GPU-aware, because the host packs the blocks into
// messages. Where this schedule is the cheapest, blocks are few and short.
Status BruckExchange::move(const char* name, std::byte* to, const std::byte* from,
                           std::size_t bytes) {
  if (!staged_ || bytes == 0) return Status::ok;
  return comm::copy_and_wait(context_.device_stream(), name, to, from, bytes, &exchange_);
}

Status BruckExchange::check(const std::byte* block, int owner, int sender) {
  return comm::check_message(block, layout_.bytes_of(owner), codec_.header(chunk(owner), sender));
}

// Encodes this rank's values for each owner. Place p gets the block for the owner p positions
// further on.
Status BruckExchange::encode() {
  for (int number = 1; number < group_size_; ++number) {
    const comm::Range part = chunk(bruck_.further(me_, number));
    if (part.count == 0) continue;
    codec_.encode(part, memory_ + place(number) + comm::kHeaderBytes);
  }
  SLIMPI_TRY(move("copy out", staging_, memory_, layout_.own()));
  for (int number = 1; number < group_size_; ++number) {
    const comm::Range part = chunk(bruck_.further(me_, number));
    if (part.count != 0) comm::write_header(staging_ + place(number), codec_.header(part, me_));
  }
  return Status::ok;
}

// Sends a message to one member and receives one from another. The send starts before the wait for
// the receive: all ranks send around rings at the same time, so if each waited first, none would
// send.
Status BruckExchange::swap(const Outgoing& out, const Incoming& in, comm::Tag tag) {
  if (in.bytes != 0)
    SLIMPI_TRY(exchange_.receive(rank_of(in.from), tag, in.data, in.bytes, requests_[0]));
  if (out.bytes != 0)
    SLIMPI_TRY(exchange_.send(rank_of(out.to), tag, out.data, out.bytes, requests_[1]));
  if (in.bytes != 0) {
    const Timed timed(context_.statistics, Stage::exchange, "receive", in.bytes);
    std::size_t received = 0;
    SLIMPI_TRY(exchange_.wait(requests_[0], &received));
    if (received != in.bytes)
      return fail(Status::bad_message, "message from rank " + std::to_string(rank_of(in.from)) +
                                           ": " + std::to_string(received) + " bytes came where " +
                                           std::to_string(in.bytes) + " were expected");
  }
  const Timed timed(context_.statistics, Stage::exchange, "send", out.bytes);
  return exchange_.wait(requests_[1]);
}

// Runs one reduce-scatter step: packs the blocks of the places that send in this step, and unpacks
// the received blocks into the same places.
Status BruckExchange::scatter(int step) {
  const int to = bruck_.further(me_, 1 << step), from = bruck_.back(me_, 1 << step);
  const int places = bruck_.travelling(step);
  std::byte* const outgoing = staging_ + layout_.outgoing();
  std::byte* const incoming = staging_ + layout_.incoming();
  const auto bytes_at = [&](int member, int number) {
    return layout_.bytes_of(bruck_.destination(member, number, step));
  };
  // A message has the blocks of `at_once` places: as many as fit even if all blocks have the
  // greatest length, so that sender and receiver divide the places in the same way. No place is
  // overwritten before its block was sent.
  const int at_once = int(std::min(layout_.message() / layout_.block(), std::size_t(places)));
  for (int first = 0; first < places; first += at_once) {
    const int end = std::min(first + at_once, places);
    std::size_t send = 0, receive = 0;
    for (int i = first; i < end; ++i) {
      const int number = bruck_.place(step, i);
      std::memcpy(outgoing + send, staging_ + place(number), bytes_at(me_, number));
      send += bytes_at(me_, number);
      receive += bytes_at(from, number);
    }
    SLIMPI_TRY(swap({to, outgoing, send}, {from, incoming, receive}, comm::Tag::reduce_scatter));
    const std::byte* at = incoming;
    for (int i = first; i < end; ++i) {
      const int number = bruck_.place(step, i);
      std::memcpy(staging_ + place(number), at, bytes_at(from, number));
      at += bytes_at(from, number);
    }
  }
  return Status::ok;
}

// Adds up this rank's chunk. Place p now has the block of the member p positions back.
Status BruckExchange::sum() {
  const comm::Range part = chunk(me_);
  if (part.count == 0) return Status::ok;
  for (int number = 1; number < group_size_; ++number)
    SLIMPI_TRY(check(staging_ + place(number), me_, bruck_.back(me_, number)));
  SLIMPI_TRY(move("copy in", memory_, staging_, layout_.own()));
  codec_.add_and_encode(part, memory_ + layout_.own() + comm::kHeaderBytes, [&](int member) {
    return memory_ + place(bruck_.back(me_, member)) + comm::kHeaderBytes;
  });
  std::byte* const block = staging_ + layout_.own();
  SLIMPI_TRY(move("copy out", block, memory_ + layout_.own(), layout_.block()));
  codec_.count_infinities(block + comm::kHeaderBytes, part.count);
  comm::write_header(block, codec_.header(part, me_));
  return Status::ok;
}

// Runs one all-gather step. The sums are contiguous from the start of `staging_`, this rank's own
// first, so they need no packing. They overwrite the blocks of the reduce-scatter.
Status BruckExchange::gather(int step) {
  const int distance = bruck_.gathered(step);
  const int to = bruck_.back(me_, distance), from = bruck_.further(me_, distance);
  const std::size_t send = gathered(bruck_.to_gather(step)), begin = gathered(distance);
  const std::size_t receive = gathered(distance + bruck_.to_gather(step)) - begin;
  const auto bytes_at = [](std::size_t at, std::size_t end) {
    return at < end ? std::min(BruckLayout::kMostInMessage, end - at) : 0;
  };
  for (std::size_t at = 0; at < std::max(send, receive); at += BruckLayout::kMostInMessage)
    SLIMPI_TRY(swap({to, staging_ + at, bytes_at(at, send)},
                    {from, staging_ + begin + at, bytes_at(at, receive)}, comm::Tag::all_gather));
  return Status::ok;
}

Status BruckExchange::decode() {
  SLIMPI_TRY(move("copy in", memory_, staging_, gathered(group_size_)));
  std::size_t at = layout_.bytes_of(me_);
  for (int number = 1; number < group_size_; ++number) {
    const int owner = bruck_.further(me_, number);
    const comm::Range part = chunk(owner);
    if (part.count == 0) continue;
    SLIMPI_TRY(check(staging_ + at, owner, owner));
    codec_.decode(part, memory_ + at + comm::kHeaderBytes);
    at += layout_.bytes_of(owner);
  }
  return staged_ ? comm::synchronize(context_.device_stream(), &exchange_) : Status::ok;
}

Status BruckExchange::run_steps() {
  if (layout_.block() == 0) return Status::ok;  // the same on all ranks
  SLIMPI_TRY(encode());
  for (int step = 0; step < bruck_.steps(); ++step) SLIMPI_TRY(scatter(step));
  SLIMPI_TRY(sum());
  std::memcpy(staging_, staging_ + layout_.own(), layout_.bytes_of(me_));
  for (int step = 0; step < bruck_.steps(); ++step) SLIMPI_TRY(gather(step));
  return decode();
}

}  // namespace

Status run_bruck(const Context& context, const ExchangeLayout& layout,
                 const comm::InterNodeGroup& group, comm::Range shard, const float* in, float* out,
                 float* residual) {
  return BruckExchange(context, static_cast<const BruckLayout&>(layout), group, shard, in, out,
                       residual)
      .run();
}

int BruckSteps::steps() const {
  int steps = 0;
  while ((1 << steps) < group_size_) ++steps;
  return steps;
}

// Counts the numbers below group_size that have bit `step` set. Of every 2 * bit consecutive
// numbers, counted from 0, these are the last `bit`.
int BruckSteps::travelling(int step) const {
  const int bit = 1 << step;
  return group_size_ / (2 * bit) * bit + std::max(0, group_size_ % (2 * bit) - bit);
}

int BruckSteps::to_gather(int step) const {
  return std::min(gathered(step), group_size_ - gathered(step));
}

// block_ is the length of the first block, because the first chunk is the longest.
BruckLayout::BruckLayout(const ExchangeSize& size) : first_of_(1, 0) {
  const std::size_t members = std::size_t(size.group_size);
  chunks_.reserve(members);
  lengths_.reserve(members);
  first_of_.reserve(2 * members + 1);
  for (int member = 0; member < size.group_size; ++member) {
    chunks_.push_back(
        comm::chunk_of(size.count, size.group_size, member, comm::chunk_alignment(size.format)));
    // An owner without elements has no blocks and no messages. All other blocks, and the header,
    // are multiples of 16 bytes long, so every payload begins at a multiple of 16 bytes.
    const std::uint64_t elements = chunks_.back().count;
    lengths_.push_back(elements == 0 ? 0 : round_up(message_bytes(size.format, elements), 16));
  }
  // Counts twice around the ring, so that the bytes of consecutive owners are one difference, even
  // across the end of the ring.
  for (std::size_t i = 0; i < 2 * members; ++i)
    first_of_.push_back(first_of_.back() + lengths_[i % members]);
  block_ = lengths_.front();
  message_ = std::max(kMostInMessage, block_);
}

std::unique_ptr<const ExchangeLayout> bruck_layout(const ExchangeSize& size) {
  return std::make_unique<BruckLayout>(size);
}

Need bruck_need(const ExchangeSize& size) {
  const BruckLayout layout(size);
  return {layout.total(), layout.chunk(0).count};
}

}  // namespace slimpi::inter
