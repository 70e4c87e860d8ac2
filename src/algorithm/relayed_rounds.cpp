// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/relayed_rounds.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "algorithm/communicator.h"
#include "algorithm/overflow.h"
#include "algorithm/owner_sum.h"
#include "algorithm/piece.h"
#include "algorithm/relay.h"
#include "algorithm/segments.h"

namespace slimpi::algorithm {

namespace {

// Bytes that travel in one message at most, unless a single block is longer.
constexpr std::size_t kPiece = 256 << 10;

// Where everything lies: a place for each member's block, then the block of the own sum, then two
// messages under way. Blocks are messages of two_rounds.h, header included.
struct Shape {
  Shape(const kernels::Format& format_, std::uint64_t count_, int members_)
      : format(format_),
        count(count_),
        members(members_),
        align(chunk_alignment(format)),
        block(bytes_of(0)),
        piece(std::max(kPiece, block)) {}

  Range chunk(int owner) const { return part_of(count, members, owner, align); }
  // Of the block about a member's chunk; none where the chunk is empty.
  std::size_t bytes_of(int owner) const {
    const std::uint64_t elements = chunk(owner).count;
    return elements == 0 ? 0 : (message_bytes(format, elements) + 15) / 16 * 16;
  }
  std::size_t place(int number) const { return block * std::size_t(number); }
  std::size_t own() const { return place(members); }
  std::size_t outgoing() const { return own() + block; }
  std::size_t incoming() const { return outgoing() + piece; }
  std::size_t total() const { return incoming() + piece; }

  const kernels::Format format;
  const std::uint64_t count;
  const int members;
  const std::uint64_t align;
  const std::size_t block, piece;  // the longest block; bytes of a message of whole blocks
};

class RelayedRounds {
 public:
  RelayedRounds(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                float* residual)
      : call_(call),
        rails_(rails),
        slice_(slice),
        in_(in),
        out_(out),
        residual_(residual),
        exchange_(call.communicator.exchange()),
        statistics_(call.communicator.statistics()),
        overflow_(call.plan.format.coding, statistics_),
        shape_(call.plan.format, slice.count, int(rails.peers.size())),
        relay_(shape_.members),
        me_(rails.index),
        staged_(call.device.staged),
        memory_(call.communicator.scratch().messages.data()),
        staging_(staged_ ? call.communicator.scratch().staging.data() : memory_) {}

  Status run() { return exchange_.settle(run_steps(), requests_); }

 private:
  Status run_steps();
  Status encode();
  Status scatter(int step);
  Status sum();
  Status gather(int step);
  Status decode();

  Status swap(int to, std::size_t send, const std::byte* from, int source, std::size_t receive,
              std::byte* into, Tag tag);
  Status check(const std::byte* block, int owner, int sender);
  Status move(const char* name, std::byte* to, const std::byte* from, std::size_t bytes);

  Range chunk(int member) const { return shape_.chunk(member); }
  std::size_t place(int number) const { return shape_.place(number); }
  std::size_t gathered(int blocks) const;
  int rank_of(int member) const { return rails_.peers[std::size_t(member)]; }
  float* residual(const Range& part) const {
    return residual_ == nullptr ? nullptr : residual_ + part.first;
  }
  kernels::Draw draw(const Range& part) const { return draw_for(call_, slice_, part); }
  codec::Message message(int owner, int sender) const {
    return message_about(call_, call_.plan.format, slice_, chunk(owner), rank_of(sender));
  }

  Call& call_;
  const Rails& rails_;
  const Range slice_;
  const float* in_;
  float* out_;
  float* residual_;
  Exchange& exchange_;
  Statistics& statistics_;
  Overflow overflow_;
  const Shape shape_;
  const Relay relay_;
  const int me_;
  const bool staged_;
  std::byte *memory_, *staging_;  // the same layout; one memory where the device is not staged
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

// Bytes of the sums of the next `blocks` members, this one's first, which lie without gaps.
std::size_t RelayedRounds::gathered(int blocks) const {
  std::size_t bytes = 0;
  for (int i = 0; i < blocks; ++i) bytes += shape_.bytes_of(relay_.further(me_, i));
  return bytes;
}

// Blocks are few and short where this schedule is the cheapest, and the host puts them together: so
// they are staged whatever MPI takes.
Status RelayedRounds::move(const char* name, std::byte* to, const std::byte* from,
                           std::size_t bytes) {
  if (!staged_ || bytes == 0) return Status::ok;
  return copy_and_wait(call_.device, call_.stream, name, to, from, bytes);
}

Status RelayedRounds::check(const std::byte* block, int owner, int sender) {
  return codec::check_message(block, shape_.bytes_of(owner), message(owner, sender));
}

// What this rank has for each owner, into the place that says how far on the owner is.
Status RelayedRounds::encode() {
  for (int number = 1; number < shape_.members; ++number) {
    const Range part = chunk(relay_.further(me_, number));
    if (part.count == 0) continue;
    const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
    call_.device.kernels()->encode(call_.plan.format, draw(part), in_ + part.first, residual(part),
                                   part.count, memory_ + place(number) + codec::kHeaderBytes,
                                   call_.stream);
  }
  SLIMPI_TRY(move("copy out", staging_, memory_, shape_.own()));
  for (int number = 1; number < shape_.members; ++number) {
    const int owner = relay_.further(me_, number);
    const Range part = chunk(owner);
    if (part.count == 0) continue;
    std::byte* const block = staging_ + place(number);
    overflow_.encoded(block + codec::kHeaderBytes, staged_ ? nullptr : in_ + part.first,
                      part.count);
    codec::write_header(block, message(owner, me_));
  }
  return Status::ok;
}

// A message to one rank and one from another; either may have nothing to carry.
Status RelayedRounds::swap(int to, std::size_t send, const std::byte* from, int source,
                           std::size_t receive, std::byte* into, Tag tag) {
  if (receive != 0)
    SLIMPI_TRY(exchange_.receive(rank_of(source), tag, into, receive, requests_[0]));
  if (send != 0) SLIMPI_TRY(exchange_.send(rank_of(to), tag, from, send, requests_[1]));
  if (receive != 0) {
    const Timed timed(statistics_, Stage::exchange, "receive", receive);
    std::size_t received = 0;
    SLIMPI_TRY(exchange_.wait(requests_[0], &received));
    if (received != receive)
      return fail(Status::bad_message, "message from rank " + std::to_string(rank_of(source)) +
                                           ": " + std::to_string(received) + " bytes came where " +
                                           std::to_string(receive) + " were expected");
  }
  const Timed timed(statistics_, Stage::exchange, "send", send);
  return exchange_.wait(requests_[1]);
}

Status RelayedRounds::scatter(int step) {
  const int to = relay_.further(me_, 1 << step), from = relay_.back(me_, 1 << step);
  const std::vector<int> places = relay_.travelling(step);
  std::byte* const outgoing = staging_ + shape_.outgoing();
  std::byte* const incoming = staging_ + shape_.incoming();
  const auto bytes_at = [&](int member, int number) {
    return shape_.bytes_of(relay_.destination(member, number, step));
  };
  // As many places at a time as fit with the longest blocks, so that none is received into before
  // it was sent from.
  const std::size_t at_once = shape_.piece / shape_.block;
  for (std::size_t first = 0; first < places.size(); first += at_once) {
    const std::span<const int> now(&places[first], std::min(at_once, places.size() - first));
    std::size_t send = 0, receive = 0;
    for (const int number : now) {
      std::memcpy(outgoing + send, staging_ + place(number), bytes_at(me_, number));
      send += bytes_at(me_, number);
      receive += bytes_at(from, number);
    }
    SLIMPI_TRY(swap(to, send, outgoing, from, receive, incoming, Tag::scatter_reduce));
    const std::byte* at = incoming;
    for (const int number : now) {
      std::memcpy(staging_ + place(number), at, bytes_at(from, number));
      at += bytes_at(from, number);
    }
  }
  return Status::ok;
}

Status RelayedRounds::sum() {
  const Range part = chunk(me_);
  if (part.count == 0) return Status::ok;
  for (int number = 1; number < shape_.members; ++number)
    SLIMPI_TRY(check(staging_ + place(number), me_, relay_.back(me_, number)));
  SLIMPI_TRY(move("copy in", memory_, staging_, shape_.own()));
  const Timed timed(statistics_, Stage::decode, "sum", 4 * part.count);
  if (!staged_) overflow_.keep(in_ + part.first, part.count, *call_.device.kernels());
  std::byte* const code = memory_ + shape_.own() + codec::kHeaderBytes;
  const Owned piece{shape_.members, me_,  in_ + part.first,  residual(part),
                    part.count,     code, out_ + part.first, call_.totals};
  sum_at_owner(call_, draw(part), piece, [&](int member) {
    return memory_ + place(relay_.back(me_, member)) + codec::kHeaderBytes;
  });
  std::byte* const block = staging_ + shape_.own();
  SLIMPI_TRY(move("copy out", block, memory_ + shape_.own(), shape_.block));
  if (overflow_.counts()) {
    std::vector<const std::byte*> addends;
    for (int number = 1; number < shape_.members; ++number)
      addends.push_back(staging_ + place(number) + codec::kHeaderBytes);
    overflow_.summed(block + codec::kHeaderBytes, addends, part.count);
  }
  codec::write_header(block, message(me_, me_));
  return Status::ok;
}

Status RelayedRounds::gather(int step) {
  const int distance = relay_.gathered(step);
  const int to = relay_.back(me_, distance), from = relay_.further(me_, distance);
  const std::size_t send = gathered(relay_.to_gather(step)), begin = gathered(distance);
  const std::size_t receive = gathered(distance + relay_.to_gather(step)) - begin;
  for (std::size_t at = 0; at < std::max(send, receive); at += kPiece)
    SLIMPI_TRY(swap(to, at < send ? std::min(kPiece, send - at) : 0, staging_ + at, from,
                    at < receive ? std::min(kPiece, receive - at) : 0, staging_ + begin + at,
                    Tag::all_gather));
  return Status::ok;
}

Status RelayedRounds::decode() {
  SLIMPI_TRY(move("copy in", memory_, staging_, gathered(shape_.members)));
  std::size_t at = shape_.bytes_of(me_);
  for (int number = 1; number < shape_.members; ++number) {
    const int owner = relay_.further(me_, number);
    const Range part = chunk(owner);
    if (part.count == 0) continue;
    SLIMPI_TRY(check(staging_ + at, owner, owner));
    const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
    call_.device.kernels()->decode(call_.plan.format, memory_ + at + codec::kHeaderBytes,
                                   part.count, out_ + part.first, call_.stream);
    at += shape_.bytes_of(owner);
  }
  return staged_ ? wait_for_stream(call_.device, call_.stream) : Status::ok;
}

Status RelayedRounds::run_steps() {
  SLIMPI_TRY(encode());
  for (int step = 0; step < relay_.steps(); ++step) SLIMPI_TRY(scatter(step));
  SLIMPI_TRY(sum());
  std::memcpy(staging_, staging_ + shape_.own(), shape_.bytes_of(me_));
  for (int step = 0; step < relay_.steps(); ++step) SLIMPI_TRY(gather(step));
  return decode();
}

}  // namespace

Status run_relayed(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                   float* residual) {
  return RelayedRounds(call, rails, slice, in, out, residual).run();
}

Need relayed_need(const kernels::Format& format, std::uint64_t count, int members, Grain, bool) {
  const Shape shape(format, count, members);
  return {shape.total(), shape.chunk(0).count};
}

}  // namespace slimpi::algorithm
