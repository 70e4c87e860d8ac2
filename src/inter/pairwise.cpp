// SPDX-License-Identifier: BSD-3-Clause
// The pairwise schedule of the inter-node exchange, for any number of nodes: a reduce-scatter, then
// an all-gather.
//
// The M ranks of an inter-node group divide a shard into M chunks and own one each. Every rank
// encodes the chunks that it does not own and sends each to its owner. The owner of a chunk decodes
// the messages, adds them and its own exact values in rank order, encodes the sum, and sends it to
// all ranks. All ranks, the owner included, decode the same message, so they get the same bytes.
//
// The segments of the chunks form a pipeline. In each step a rank sends one message and receives
// one (pairwise.h). While these are in flight, it encodes, adds or decodes for the steps before and
// after. The bytes in flight are limited (Segments::most_in_flight), because flows that compete for
// a link slow each other down by more than waiting costs. Several small messages may be in flight.
//
// A reduce-scatter of the program is the first phase alone, with chunks as long as the program's
// blocks, where the owner keeps its sum without encoding it. An all-gather of the program is the
// second phase alone, where the owner of a chunk encodes its block instead of a sum.
//
// Cost for n floats: every rank sends and receives 2 (M-1)/M * n * bits/8 bytes, in 2 (M-1)
// messages per segment. That is slower than bruck.cpp if n is so small that the messages cost more
// than the bytes. Error with nearest rounding: at most half a quantization step of each sender's
// bucket, plus half a step of the sum's bucket.
#include "inter/pairwise.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/exceptions.h"
#include "comm/scatter.h"
#include "inter/chunk_reduction.h"
#include "inter/schedule.h"
#include "inter/segment_ring.h"

namespace slimpi::inter {

namespace {

// Takes the steps of PairwiseSteps through their stages, each stage in the order of the steps:
//
//   prepare   queues the kernel that makes the step's message; its event says when it is made
//   begin     starts to send this message
//   finish    waits until this message has left and the message that the step receives has arrived
//   decode    queues the kernel that decodes the message that an all-gather step received; without
//             an all-gather, the kernel that adds a segment of this rank's chunk. After the last
//             such kernel of a segment, posts the segment's buffers again
//
// A cursor for each stage counts the steps that have passed the stage. When step `index` begins:
//
//   decoded_ <= finished_ <= index < prepared_ <= index + 1 + ahead_
//
//   index < prepared_       the loop first finishes steps until `index` is ready, and every step is
//                           ready when all steps before it are finished.
//   in_flight_              is the sum of bytes_in_flight over the steps finished_ to index - 1.
//                           With step `index` it is at most segments().most_in_flight, unless
//                           `index` is the only step in flight
//   buffers                 a segment is finished, decoded and posted again before a step uses its
//                           buffers for the segment `depth` later. PairwiseSteps::ready ensures
//                           this for send buffers. For receive buffers the depth does: it is the
//                           number of segments that may be in flight, plus at least three. In an
//                           exchange of one phase alone any number of steps may be in flight,
//                           because steps of empty chunks have 0 bytes. It posts the buffers of a
//                           segment again right after the segment's last step, and `ready` waits
//                           for that step.
//
// Why no rank hangs: all ranks have the same sequence of segments and rounds, and step i of a rank
// receives the message that another rank sends in its step i. Let i be the lowest step that a rank
// waits for in `finish`. Every other rank waits in `finish` for step i or a later one, or for its
// device, which waits for no rank. So every rank has begun step i and has posted its receives of
// that segment, and the messages of step i can complete in both directions.
class PairwiseExchange {
 public:
  PairwiseExchange(const Context& context, const SegmentedLayout& layout,
                   std::span<const int> ranks, comm::Range shard, ChunkCodec& codec)
      : context_(context),
        layout_(layout),
        codec_(codec),
        ring_(context, layout_, ranks, shard,
              context.totals == nullptr ? PayloadUse::once : PayloadUse::often),
        ahead_(context.device.staged ? 2 * layout_.rounds() : 1) {}

  Status run() {
    return context_.exchange.settle(caught([&] { return run_steps(); }), ring_.requests());
  }

 private:
  Status run_steps();
  void sum(const Step& step, const comm::Range& part);
  Status keep_sum(const Step& step);
  Status prepare(const Step& step);
  Status begin(const Step& step);
  Status decode(const Step& step);
  Status finish_next();
  Status prepare_until(std::int64_t end);
  Status decode_finished();

  const PairwiseSteps& steps() const { return layout_.steps(); }
  // Returns a ChunkCodec::PayloadFrom for a segment of this rank's chunk.
  auto received(std::int64_t number) const {
    return [this, number](int member) {
      return ring_.payload(MessageKind::scatter_in, number, steps().round_from(member));
    };
  }

  const Context& context_;
  const SegmentedLayout& layout_;
  ChunkCodec& codec_;
  SegmentRing ring_;
  const std::int64_t ahead_;  // for so many steps the message is prepared before they begin
  std::int64_t prepared_ = 0, finished_ = 0, decoded_ = 0;  // cursors
  std::size_t in_flight_ = 0;                               // bytes
};

void PairwiseExchange::sum(const Step& step, const comm::Range& part) {
  const auto from = received(step.number);
  std::byte* const payload = ring_.payload(MessageKind::gather_out, step.number, step.round);
  // `from` is passed by reference, because std::function would copy it to the heap.
  codec_.add_and_encode(part, payload, std::cref(from));
  if (!context_.device.staged) codec_.count_infinities(payload, part.count);
}

// For a reduce-scatter that no all-gather follows. After the last round of a segment of this rank's
// chunk, when all messages of the segment have arrived, adds the received values to the chunk and
// posts the segment's buffers again.
Status PairwiseExchange::keep_sum(const Step& step) {
  if (step.number < 0 || step.round != layout_.rounds() - 1) return Status::ok;
  const comm::Range part = layout_.segment(layout_.me(), step.number);
  const auto from = received(step.number);
  if (part.count != 0) codec_.add_uncompressed(part, std::cref(from));
  SLIMPI_TRY(ring_.decoded(step.number, 4 * part.count));
  return ring_.recycle(step.number);
}

// Queues the kernel that makes the step's message. A reduce-scatter step sends this rank's values
// to the owner of a segment. An all-gather step sends the sum of a segment of this rank's own
// chunk, which is made once, in round 0.
Status PairwiseExchange::prepare(const Step& step) {
  if (step.number < 0 || (step.gather && step.round != 0)) return Status::ok;
  const comm::Range part = layout_.sent_in(step);
  if (part.count == 0) return Status::ok;
  if (step.gather)
    sum(step, part);
  else
    codec_.encode(part, ring_.payload(MessageKind::scatter_out, step.number, step.round));
  return ring_.stage_out(step);
}

Status PairwiseExchange::begin(const Step& step) {
  const comm::Range part = layout_.sent_in(step);
  if (part.count == 0) return Status::ok;
  if (step.gather && step.round != 0) return ring_.send(step);
  SLIMPI_TRY(ring_.wait_for_payload(step));
  if (step.gather) {
    // The kernel of the sum has read all received messages, so those in device memory, which were
    // not checked on arrival, can be checked now.
    SLIMPI_TRY(ring_.check(MessageKind::scatter_in, step.number));
    if (context_.device.staged)  // else counted with the sum
      codec_.count_infinities(ring_.host_sum(step.number), part.count);
  }
  return ring_.send(step);
}

// Queues the kernel that decodes a step's received message. After the last round of a segment, also
// posts its buffers again (recycle()). On a staged device (a GPU) it posts those of the previous
// segment instead, whose kernels have usually ended by now, so that the host need not wait. In an
// all-gather alone it posts none, because any number of steps may be in flight there (see `buffers`
// above).
Status PairwiseExchange::decode(const Step& step) {
  if (!layout_.gathers()) return keep_sum(step);
  if (!step.gather || step.number < 0) return Status::ok;
  const comm::Range part = layout_.received_in(step);
  if (part.count != 0)
    codec_.decode(part, ring_.payload(MessageKind::gather_in, step.number, step.round));
  if (step.round != layout_.rounds() - 1) return Status::ok;
  SLIMPI_TRY(ring_.decoded(step.number, 4 * part.count));
  return ring_.recycle(context_.device.staged && layout_.scatters() ? step.number - 1
                                                                    : step.number);
}

Status PairwiseExchange::finish_next() {
  const Step next = steps().at(finished_);
  SLIMPI_TRY(ring_.finish(next));
  in_flight_ -= layout_.bytes_in_flight(next);
  ++finished_;
  return Status::ok;
}

// Prepares the steps before `end` that are ready.
Status PairwiseExchange::prepare_until(std::int64_t end) {
  for (; prepared_ < std::min(end, steps().step_count()) && steps().ready(prepared_, finished_);
       ++prepared_)
    SLIMPI_TRY(prepare(steps().at(prepared_)));
  return Status::ok;
}

Status PairwiseExchange::decode_finished() {
  for (; decoded_ < finished_; ++decoded_) SLIMPI_TRY(decode(steps().at(decoded_)));
  return Status::ok;
}

Status PairwiseExchange::run_steps() {
  for (std::int64_t number = 0; number < layout_.segments().depth; ++number)
    SLIMPI_TRY(ring_.post(number));
  for (std::int64_t index = 0; index < steps().step_count(); ++index) {
    const Step now = steps().at(index);
    const std::size_t bytes = layout_.bytes_in_flight(now);
    while (finished_ < index && (in_flight_ + bytes > layout_.segments().most_in_flight ||
                                 !steps().ready(index, finished_)))
      SLIMPI_TRY(finish_next());
    // A staged device (a GPU) works on the next messages while the host waits for this one in
    // begin().
    SLIMPI_TRY(prepare_until(index + 1 + (context_.device.staged ? ahead_ : 0)));
    SLIMPI_TRY(begin(now));
    in_flight_ += bytes;
    // While the messages travel, prepares the next ones and decodes those that have arrived.
    SLIMPI_TRY(prepare_until(index + 1 + ahead_));
    if (now.gather || !layout_.gathers()) SLIMPI_TRY(decode_finished());
  }
  while (finished_ < steps().step_count()) SLIMPI_TRY(finish_next());
  SLIMPI_TRY(decode_finished());
  SLIMPI_TRY(ring_.finish_copies());
  if (!layout_.gathers()) return Status::ok;
  return ring_.recycle(steps().segment_count() - 1);  // checks the headers of the last messages
}

}  // namespace

std::unique_ptr<const ExchangeLayout> pairwise_layout(const ExchangeSize& size) {
  return std::make_unique<SegmentedLayout>(size);
}

Status run_pairwise(const Context& context, const SegmentedLayout& layout,
                    std::span<const int> ranks, comm::Range shard, ChunkCodec& codec) {
  return PairwiseExchange(context, layout, ranks, shard, codec).run();
}

Status run_pairwise_schedule(const Context& context, const ExchangeLayout& layout,
                             const comm::InterNodeGroup& group, comm::Range shard, const float* in,
                             float* out, float* residual) {
  const auto& pairwise = static_cast<const SegmentedLayout&>(layout);
  ChunkCodec codec(context, group, shard, pairwise.chunk(group.index).first, in, out, residual);
  return run_pairwise(context, pairwise, group.peers, shard, codec);
}

Status run_pairwise_scatter(const Context& context, const comm::InterNodeGroup& group,
                            comm::Range shard, std::span<const comm::Range> chunks, const float* in,
                            float* residual) {
  const ExchangeSize size = size_of(context, group, shard.count);
  const SegmentedLayout layout(size, chunks, scatter_segments(size, comm::longest_of(chunks)),
                               {.gathers = false}, context.memory);
  ChunkCodec codec(context, group, shard, layout.chunk(group.index).first, in, nullptr, residual);
  return run_pairwise(context, layout, group.peers, shard, codec);
}

StepPeers peers_in_round(int group_size, int me, int round) {
  if (group_size % 2 != 0)
    return {(me + round + 1) % group_size, (me - round - 1 + group_size) % group_size};
  // The circle method: two members, neither of them the last, are peers if their numbers add up to
  // the round, modulo `around`. A member that would be its own peer has the last one as its peer.
  const int around = group_size - 1;
  int peer = 0;
  if (me == around) {
    peer = int(std::int64_t(round) * (group_size / 2) % around);  // 2 * peer is round modulo around
  } else {
    peer = (round - me + around) % around;
    if (peer == me) peer = around;
  }
  return {peer, peer};
}

PairwiseSteps::PairwiseSteps(int group_size, int me, std::int64_t segments, int depth,
                             Phases phases, std::int64_t gap, std::pmr::memory_resource* memory)
    : segments_(segments),
      gap_(gap),
      depth_(depth),
      phases_(phases),
      peers_(memory),
      round_from_(std::size_t(group_size), memory) {
  peers_.reserve(std::size_t(group_size));
  for (int round = 0; round < group_size - 1; ++round) {
    peers_.push_back(peers_in_round(group_size, me, round));
    round_from_[std::size_t(peers_.back().from)] = round;
  }
}

PairwiseSteps::PairwiseSteps(int peers, std::int64_t segments, int depth,
                             std::pmr::memory_resource* memory)
    : segments_(segments),
      gap_(0),
      depth_(depth),
      phases_{.scatters = false},
      peers_(std::size_t(peers), memory),
      round_from_(std::size_t(peers), memory) {
  for (int peer = 0; peer < peers; ++peer) peers_[std::size_t(peer)] = {peer, peer};
  std::iota(round_from_.begin(), round_from_.end(), 0);
}

Step PairwiseSteps::at(std::int64_t index) const {
  const std::int64_t number = index / cycle();
  const int within = int(index % cycle());
  if (phases_.scatters && within < rounds())
    return {false, number < segments_ ? number : -1, within};
  return {true, number - gap_, within % rounds()};
}

bool PairwiseSteps::ready(std::int64_t index, std::int64_t finished) const {
  const Step step = at(index);
  const std::int64_t last_round = rounds() - 1;
  // This step uses the buffers of the segment `depth` before its own. last_in_place is the step of
  // that segment's last round in the same phase. All its rounds must be finished, because they
  // share one buffer, gather_out.
  const std::int64_t last_in_place = index - depth_ * cycle() + (last_round - step.round);
  if (finished <= last_in_place) return false;
  // An all-gather step sends the sum, so all reduce-scatter steps of its segment must be finished.
  return !step.gather || !phases_.scatters || step.number < 0 ||
         finished > step.number * cycle() + last_round;
}

SegmentedLayout::SegmentedLayout(const ExchangeSize& size, const Segments& segments,
                                 std::pmr::memory_resource* memory)
    : me_(size.me),
      phases_{},
      format_(size.format),
      segments_(segments),
      steps_(size.group_size, size.me, segments_.per_longest_chunk, segments_.depth, phases_,
             size.segment_class == comm::SegmentClass::small ? 1 : 2, memory),
      chunks_(memory) {
  chunks_.reserve(std::size_t(size.group_size));
  for (int member = 0; member < size.group_size; ++member)
    chunks_.push_back(comm::chunk_of(size.count, size.group_size, member, segments_.align));
}

SegmentedLayout::SegmentedLayout(const ExchangeSize& size, std::span<const comm::Range> chunks,
                                 const Segments& segments, Phases phases,
                                 std::pmr::memory_resource* memory)
    : me_(size.me),
      phases_(phases),
      format_(size.format),
      segments_(segments),
      steps_(size.group_size, size.me, segments_.per_longest_chunk, segments_.depth, phases, 0,
             memory),
      chunks_(chunks.begin(), chunks.end(), memory) {}

SegmentedLayout::SegmentedLayout(const kernels::Format& format, std::uint64_t count, int peers,
                                 const Segments& segments, std::pmr::memory_resource* memory)
    : me_(peers),
      phases_{.scatters = false},
      gather_tag_(comm::Tag::peers),
      format_(format),
      segments_(segments),
      steps_(peers, segments.per_longest_chunk, segments.depth, memory),
      chunks_(std::size_t(peers) + 1, {0, count}, memory) {}

comm::Range SegmentedLayout::segment(int member, std::int64_t number) const {
  const comm::Range& chunk = chunks_[std::size_t(member)];
  if (number < 0 || number >= segment_count()) return {};
  const std::uint64_t first = std::uint64_t(number) * segments_.elements;
  // A chunk shorter than the longest may lack the last segments.
  if (first >= chunk.count) return {};
  return {chunk.first + first, std::min(segments_.elements, chunk.count - first)};
}

std::size_t SegmentedLayout::bytes_in_flight(const Step& step) const {
  const std::uint64_t most = std::max(sent_in(step).count, received_in(step).count);
  return most == 0 ? 0 : message_bytes(format_, most);
}

std::size_t SegmentedLayout::buffer(MessageKind message, std::int64_t number, int round) const {
  // The buffers of one ring index (a segment number modulo the pipeline depth):
  //   all-gather       gather_in: one per round; gather_out: one
  //   reduce-scatter   scatter_out and scatter_in: one each per round
  const std::size_t rounds = std::size_t(this->rounds()), each = std::size_t(round);
  if (!gathers())
    return ring_index(number) * 2 * rounds + (message == MessageKind::scatter_in ? rounds : 0) +
           each;
  const std::size_t first = ring_index(number) * ((scatters() ? 3 : 1) * rounds + 1);
  if (message == MessageKind::gather_out) return first + rounds;
  if (message == MessageKind::gather_in) return first + each;
  return first + (message == MessageKind::scatter_out ? 1 : 2) * rounds + 1 + each;
}

}  // namespace slimpi::inter
