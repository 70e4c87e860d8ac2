// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/two_rounds.h"

#include <algorithm>
#include <vector>

#include "algorithm/communicator.h"
#include "algorithm/overflow.h"
#include "codec/wire.h"

namespace slimpi::algorithm {

namespace {

// Small enough that encoding, sending and decoding overlap early and stay in cache, large enough
// that a message's fixed cost does not count.
constexpr std::uint64_t kSegmentBytes = 64 << 10;

// Buffers for peers may take this much, or as much as the encoded slice, whichever is more.
constexpr std::size_t kMemoryFloor = 16 << 20;

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements) {
  return codec::kHeaderBytes + round_up(kernels::encoded_bytes(format, elements), 4);
}

class Rounds {
 public:
  Rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out, float* residual);
  Status run() { return exchange_.settle(run_steps(), requests_); }

 private:
  Status run_steps();

  // Messages of one slot, per distance to the peer: scatter-reduce out and in, all-gather in; then
  // the one message that goes to all.
  enum class Box { scatter_out, scatter_in, gather_in, gather_out };

  int peer_at(int distance) const { return (me_ + distance) % members_; }
  int rank_of(int member) const { return rails_.peers[std::size_t(member)]; }
  Range segment(int member, std::int64_t number) const;
  std::size_t offset(Box box, std::int64_t number, int distance) const;
  std::byte* wire(Box box, std::int64_t number, int distance) const {
    return staging_ + offset(box, number, distance);
  }
  std::byte* code(Box box, std::int64_t number, int distance) const {
    return memory_ + offset(box, number, distance) + codec::kHeaderBytes;
  }
  MPI_Request& request(Box box, std::int64_t number, int distance);
  kernels::Draw draw(const Range& part) const;
  codec::Message message(const Range& part, int sender) const;
  float* residual(const Range& part) const {
    return residual_ == nullptr ? nullptr : residual_ + part.first;
  }

  int behind(int distance) const { return (me_ - distance + members_) % members_; }
  std::size_t slot_of(std::int64_t number) const { return std::size_t(number % segments_.slots); }

  Status post(std::int64_t number);
  Status encode(std::int64_t number);
  Status send(std::int64_t number, int distance, const Range& part);
  Status send_staged(std::int64_t number);
  Status sum(std::int64_t number);
  void add_up(std::int64_t number, const Range& part);
  Status forward(std::int64_t number);
  Status decode(std::int64_t number);
  Status recycle(std::int64_t number);
  Status take_in(Box box, std::int64_t number, int distance, int member, const Range& part);
  void count_overflow(std::int64_t number, std::uint64_t count);
  Status wait_sent(Box box, std::int64_t number, int distance);
  Status bring_out(Box box, std::int64_t number, int distance, const Range& part);
  Status mark(std::vector<std::uint64_t>& marks, std::int64_t number);
  Status reached(const std::vector<std::uint64_t>& marks, std::int64_t number);

  Call& call_;
  const Rails& rails_;
  const Range slice_;
  const float* in_;
  float* out_;
  float* residual_;
  Exchange& exchange_;
  Statistics& statistics_;
  const kernels::Kernels& kernels_;
  Overflow overflow_;
  const int members_, me_;
  const Segments segments_;
  const bool staged_;
  std::byte *memory_, *staging_;
  std::uint64_t longest_ = 0;  // segments of the longest chunk
  std::vector<Range> chunks_;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint64_t> encoded_, summed_, decoded_;  // marks, by slot
};

Rounds::Rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out,
               float* residual)
    : call_(call),
      rails_(rails),
      slice_(slice),
      in_(in),
      out_(out),
      residual_(residual),
      exchange_(call.communicator.exchange()),
      statistics_(call.communicator.statistics()),
      kernels_(*call.device.kernels()),
      overflow_(call.plan.format.coding, statistics_),
      members_(int(rails.peers.size())),
      me_(rails.index),
      segments_(segments_for(call.plan.format, slice.count, members_, call.device.staged)),
      staged_(call.device.staged),
      memory_(call.communicator.messages.data()),
      staging_(staged_ ? call.communicator.staging.data() : memory_),
      requests_(std::size_t(segments_.slots) * std::size_t(4 * (members_ - 1)), MPI_REQUEST_NULL),
      encoded_(std::size_t(segments_.slots)),
      summed_(encoded_),
      decoded_(encoded_) {
  for (int member = 0; member < members_; ++member)
    chunks_.push_back(part_of(slice.count, members_, member, segments_.align));
  longest_ = (chunks_.front().count + segments_.elements - 1) / segments_.elements;
}

Range Rounds::segment(int member, std::int64_t number) const {
  const Range& chunk = chunks_[std::size_t(member)];
  if (number < 0 || std::uint64_t(number) * segments_.elements >= chunk.count) return {};
  const std::uint64_t first = std::uint64_t(number) * segments_.elements;
  return {chunk.first + first, std::min(segments_.elements, chunk.count - first)};
}

std::size_t Rounds::offset(Box box, std::int64_t number, int distance) const {
  const std::size_t peers = std::size_t(members_ - 1), slot = slot_of(number);
  const std::size_t within =
      box == Box::gather_out ? 3 * peers : std::size_t(box) * peers + std::size_t(distance - 1);
  return (slot * (3 * peers + 1) + within) * segments_.message;
}

MPI_Request& Rounds::request(Box box, std::int64_t number, int distance) {
  const std::size_t peers = std::size_t(members_ - 1), slot = slot_of(number);
  return requests_[(slot * 4 + std::size_t(box)) * peers + std::size_t(distance - 1)];
}

kernels::Draw Rounds::draw(const Range& part) const {
  return {call_.communicator.config().seed, std::uint32_t(call_.communicator.rank()), call_.number,
          slice_.first + part.first};
}

codec::Message Rounds::message(const Range& part, int sender) const {
  codec::Message message;
  message.format = call_.plan.format;
  message.first = slice_.first + part.first;
  message.count = part.count;
  message.call = call_.number;
  message.sender = std::uint32_t(sender);
  message.slot = call_.slot == nullptr ? 0 : call_.slot->number;
  return message;
}

Status Rounds::mark(std::vector<std::uint64_t>& marks, std::int64_t number) {
  return staged_ ? call_.device.mark(call_.stream, &marks[slot_of(number)]) : Status::ok;
}

Status Rounds::reached(const std::vector<std::uint64_t>& marks, std::int64_t number) {
  if (!staged_) return Status::ok;
  for (bool done = false;;) {
    SLIMPI_TRY(call_.device.poll(call_.stream, marks[slot_of(number)], &done));
    if (done) return Status::ok;
    exchange_.progress();
  }
}

// Receives for a segment are posted long before it is sent, so that it never waits in MPI.
Status Rounds::post(std::int64_t number) {
  for (int distance = 1; distance < members_; ++distance) {
    const int from = behind(distance);
    if (segment(me_, number).count != 0)
      SLIMPI_TRY(exchange_.receive(rank_of(from), Tag::scatter_reduce,
                                   wire(Box::scatter_in, number, distance), segments_.message,
                                   request(Box::scatter_in, number, distance)));
    if (segment(from, number).count != 0)
      SLIMPI_TRY(exchange_.receive(rank_of(from), Tag::all_gather,
                                   wire(Box::gather_in, number, distance), segments_.message,
                                   request(Box::gather_in, number, distance)));
  }
  return Status::ok;
}

Status Rounds::bring_out(Box box, std::int64_t number, int distance, const Range& part) {
  if (!staged_) return Status::ok;
  return call_.device.copy(wire(box, number, distance) + codec::kHeaderBytes,
                           code(box, number, distance),
                           kernels::encoded_bytes(call_.plan.format, part.count), call_.stream);
}

// Before a slot's message is written over, its last one has to be gone.
Status Rounds::wait_sent(Box box, std::int64_t number, int distance) {
  MPI_Request& last = request(box, number, distance);
  if (last == MPI_REQUEST_NULL) return Status::ok;
  const Timed timed(statistics_, Stage::exchange, "send", segments_.message);
  return exchange_.wait(last);
}

Status Rounds::encode(std::int64_t number) {
  for (int distance = 1; distance < members_; ++distance) {
    const Range part = segment(peer_at(distance), number);
    if (part.count == 0) continue;
    SLIMPI_TRY(wait_sent(Box::scatter_out, number, distance));
    {
      const Timed timed(statistics_, Stage::encode, "encode", 4 * part.count);
      kernels_.encode(call_.plan.format, draw(part), in_ + part.first, residual(part), part.count,
                      code(Box::scatter_out, number, distance), call_.stream);
      SLIMPI_TRY(bring_out(Box::scatter_out, number, distance, part));
    }
    if (!staged_) SLIMPI_TRY(send(number, distance, part));
  }
  return mark(encoded_, number);
}

Status Rounds::send(std::int64_t number, int distance, const Range& part) {
  std::byte* const text = wire(Box::scatter_out, number, distance);
  overflow_.encoded(text + codec::kHeaderBytes, staged_ ? nullptr : in_ + part.first, part.count);
  codec::write_header(text, message(part, call_.communicator.rank()));
  return exchange_.send(rank_of(peer_at(distance)), Tag::scatter_reduce, text,
                        message_bytes(call_.plan.format, part.count),
                        request(Box::scatter_out, number, distance));
}

// What a GPU encoded one step ago has reached host memory by now, or soon will.
Status Rounds::send_staged(std::int64_t number) {
  if (!staged_ || number < 0 || std::uint64_t(number) >= longest_) return Status::ok;
  SLIMPI_TRY(reached(encoded_, number));
  for (int distance = 1; distance < members_; ++distance)
    if (const Range part = segment(peer_at(distance), number); part.count != 0)
      SLIMPI_TRY(send(number, distance, part));
  return Status::ok;
}

Status Rounds::take_in(Box box, std::int64_t number, int distance, int member, const Range& part) {
  std::size_t received = 0;
  {
    const Timed timed(statistics_, Stage::exchange, "receive",
                      kernels::encoded_bytes(call_.plan.format, part.count));
    SLIMPI_TRY(exchange_.wait(request(box, number, distance), &received));
  }
  const std::byte* const text = wire(box, number, distance);
  SLIMPI_TRY(codec::check_message(text, received, message(part, rank_of(member))));
  if (!staged_) return Status::ok;
  return call_.device.copy(code(box, number, distance), text + codec::kHeaderBytes,
                           kernels::encoded_bytes(call_.plan.format, part.count), call_.stream);
}

Status Rounds::sum(std::int64_t number) {
  const Range part = segment(me_, number);
  if (part.count == 0) return Status::ok;
  for (int distance = 1; distance < members_; ++distance)
    SLIMPI_TRY(take_in(Box::scatter_in, number, distance, behind(distance), part));
  for (int distance = 1; distance < members_; ++distance)
    SLIMPI_TRY(wait_sent(Box::gather_out, number, distance));
  {
    const Timed timed(statistics_, Stage::decode, "sum", 4 * part.count);
    add_up(number, part);
    SLIMPI_TRY(bring_out(Box::gather_out, number, 1, part));
  }
  return mark(summed_, number);
}

// In rank order, with this rank's own exact share in its place.
void Rounds::add_up(std::int64_t number, const Range& part) {
  const float* carry = nullptr;
  if (!staged_) overflow_.keep(in_ + part.first, part.count, kernels_);
  for (int first = 0; first < members_; first += kernels::kMaxAddends) {
    const int last = std::min(members_, first + kernels::kMaxAddends);
    kernels::Addend addends[kernels::kMaxAddends] = {};
    for (int member = first; member < last; ++member) {
      kernels::Addend& addend = addends[member - first];
      if (member == me_)
        addend.exact = in_ + part.first;
      else
        addend.encoded = code(Box::scatter_in, number, (me_ - member + members_) % members_);
    }
    const bool end = last == members_;
    float* const partial = reinterpret_cast<float*>(call_.communicator.partial.data());
    kernels_.sum_encode(call_.plan.format, draw(part), addends, last - first, carry,
                        end ? residual(part) : nullptr, part.count,
                        end ? code(Box::gather_out, number, 1) : nullptr,
                        end ? out_ + part.first : partial, call_.stream);
    carry = partial;
  }
}

void Rounds::count_overflow(std::int64_t number, std::uint64_t count) {
  if (!overflow_.counts()) return;
  std::vector<const std::byte*> addends;
  for (int distance = 1; distance < members_; ++distance)
    addends.push_back(wire(Box::scatter_in, number, distance) + codec::kHeaderBytes);
  overflow_.summed(wire(Box::gather_out, number, 1) + codec::kHeaderBytes, addends, count);
}

Status Rounds::forward(std::int64_t number) {
  const Range part = segment(me_, number);
  if (part.count == 0) return Status::ok;
  SLIMPI_TRY(reached(summed_, number));
  count_overflow(number, part.count);
  std::byte* const text = wire(Box::gather_out, number, 1);
  codec::write_header(text, message(part, call_.communicator.rank()));
  for (int distance = 1; distance < members_; ++distance)
    SLIMPI_TRY(exchange_.send(rank_of(peer_at(distance)), Tag::all_gather, text,
                              message_bytes(call_.plan.format, part.count),
                              request(Box::gather_out, number, distance)));
  return Status::ok;
}

Status Rounds::decode(std::int64_t number) {
  if (number < 0 || std::uint64_t(number) >= longest_) return Status::ok;
  for (int distance = 1; distance < members_; ++distance) {
    const Range part = segment(behind(distance), number);
    if (part.count == 0) continue;
    SLIMPI_TRY(take_in(Box::gather_in, number, distance, behind(distance), part));
    const Timed timed(statistics_, Stage::decode, "decode", 4 * part.count);
    kernels_.decode(call_.plan.format, code(Box::gather_in, number, distance), part.count,
                    out_ + part.first, call_.stream);
  }
  return mark(decoded_, number);
}

// A slot whose segment is done takes the segment that comes `slots` later.
Status Rounds::recycle(std::int64_t number) {
  if (number < 0 || std::uint64_t(number) >= longest_) return Status::ok;
  SLIMPI_TRY(reached(decoded_, number));
  return post(number + segments_.slots);
}

Status Rounds::run_steps() {
  const int lag = staged_ ? 1 : 0;
  for (std::int64_t number = 0; number < segments_.slots; ++number) SLIMPI_TRY(post(number));
  for (std::int64_t step = 0; step < std::int64_t(longest_) + 2 + 3 * lag; ++step) {
    SLIMPI_TRY(encode(step));
    SLIMPI_TRY(send_staged(step - lag));
    SLIMPI_TRY(sum(step - 1 - lag));
    SLIMPI_TRY(forward(step - 1 - 2 * lag));
    SLIMPI_TRY(decode(step - 2 - 2 * lag));
    SLIMPI_TRY(recycle(step - 2 - 3 * lag));
  }
  const Timed timed(statistics_, Stage::exchange, "wait", 0);
  return exchange_.wait_all(requests_);
}

}  // namespace

Segments segments_for(const kernels::Format& format, std::uint64_t count, int members,
                      bool staged) {
  const bool quantized = format.coding == kernels::Coding::quantized;
  const std::uint64_t bucket = quantized ? format.bucket : 64;
  const std::uint64_t align = bucket == 0 ? 1 : bucket;
  const std::uint64_t chunk = part_of(count, members, 0, align).count;
  Segments segments{};
  segments.align = align;
  segments.slots = staged ? 7 : 4;
  const std::size_t peers = std::size_t(members - 1), boxes = 3 * peers + 1;
  if (bucket == 0) {
    segments.elements = std::max<std::uint64_t>(chunk, 1);
    segments.slots = 1;
  } else {
    const std::size_t most =
        std::max<std::size_t>(kMemoryFloor, kernels::encoded_bytes(format, count)) /
        (boxes * std::size_t(segments.slots));
    const std::size_t bytes = std::min(kSegmentBytes, most);
    const std::uint64_t bits = format.coding == kernels::Coding::float32 ? 32
                               : quantized                               ? format.bits
                                                                         : 16;
    const std::uint64_t blocks = std::max<std::uint64_t>(1, bytes * 8 / bits / bucket);
    segments.elements = std::min(blocks * bucket, std::max<std::uint64_t>(chunk, 1));
    const std::uint64_t needed = (chunk + segments.elements - 1) / segments.elements;
    segments.slots =
        int(std::max<std::uint64_t>(1, std::min<std::uint64_t>(segments.slots, needed)));
  }
  segments.message = round_up(message_bytes(format, segments.elements), 64);
  segments.total = segments.message * boxes * std::size_t(segments.slots);
  return segments;
}

Status run_rounds(Call& call, const Rails& rails, Range slice, const float* in, float* out,
                  float* residual) {
  Rounds rounds(call, rails, slice, in, out, residual);
  return rounds.run();
}

}  // namespace slimpi::algorithm
