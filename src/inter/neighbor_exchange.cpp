// SPDX-License-Identifier: BSD-3-Clause
#include "inter/neighbor_exchange.h"

#include "base/exceptions.h"
#include "inter/pairwise.h"
#include "inter/segment_ring.h"

namespace slimpi::inter {

namespace {

// Sends each segment of this rank to all peers, receives theirs, and computes the result
// (PeerCodec::apply). Round i exchanges with peer i. run_steps() is a pipeline: segment n is
// encoded in step n, and in this or later steps it is sent, applied and recycled (its receives are
// posted again for a later segment).
//
//   buffers    Segment n uses the buffers of segment n - depth, which was applied and recycled
//              before. A segment passes all stages in 2 steps, on a staged device in 4, and the
//              depth is greater than that, unless it is the number of all segments.
//   progress   A rank waits for a peer's segment n only after it has sent its own segment n and
//              posted its receives up to n. Consider the rank that waits for the lowest n: all
//              other ranks wait for n or later, so its peers have sent n and can receive n.
class NeighborExchange {
 public:
  NeighborExchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                   PeerCodec& codec)
      : context_(context),
        codec_(codec),
        layout_(context.format, shard.count, int(ranks.size()),
                neighbor_segments(context.format, shard.count, int(ranks.size()),
                                  context.device.staged),
                context.memory),
        members_(members_of(context, ranks)),
        theirs_(ranks.size(), context.memory),
        ring_(context, layout_, members_, shard, PayloadUse::often) {}

  Status run() {
    return context_.exchange.settle(caught([&] { return run_steps(); }), ring_.requests());
  }

 private:
  static std::pmr::vector<int> members_of(const Context& context, std::span<const int> ranks) {
    std::pmr::vector<int> members(ranks.begin(), ranks.end(), context.memory);
    members.push_back(context.rank);
    return members;
  }
  Status run_steps();
  bool exists(std::int64_t number) const { return number >= 0 && number < layout_.segment_count(); }
  comm::Range part(std::int64_t number) const { return layout_.segment(layout_.me(), number); }

  Status encode(std::int64_t number);
  Status send(std::int64_t number);
  Status apply(std::int64_t number);

  const Context& context_;
  PeerCodec& codec_;
  const SegmentedLayout layout_;
  std::pmr::vector<int> members_;  // the peers, then this rank
  std::pmr::vector<const std::byte*> theirs_;
  SegmentRing ring_;
};

Status NeighborExchange::encode(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  const Timed timed(context_.statistics, Stage::encode, "encode", 4 * part(number).count);
  codec_.encode(part(number), ring_.payload(MessageKind::gather_out, number, 0));
  return ring_.stage_out({true, number, 0});
}

Status NeighborExchange::send(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  SLIMPI_TRY(ring_.wait_for_payload({true, number, 0}));
  for (int peer = 0; peer < layout_.rounds(); ++peer) SLIMPI_TRY(ring_.send({true, number, peer}));
  return Status::ok;
}

// Computes the result of a segment (PeerCodec::apply) from the payloads of the peers. They are
// passed in the order of the ranks in run_neighbor_exchange(), whatever the order of their arrival.
Status NeighborExchange::apply(std::int64_t number) {
  if (!exists(number)) return Status::ok;
  for (int peer = 0; peer < layout_.rounds(); ++peer) {
    SLIMPI_TRY(ring_.finish({true, number, peer}));
    theirs_[std::size_t(peer)] = ring_.payload(MessageKind::gather_in, number, peer);
  }
  const Timed timed(context_.statistics, Stage::decode, "decode", 4 * part(number).count);
  codec_.apply(part(number), ring_.payload(MessageKind::gather_out, number, 0), theirs_);
  return ring_.decoded(number, 4 * part(number).count);
}

// Runs the pipeline. On a staged device (a GPU), a segment is sent one step after it was encoded,
// and recycled one step after it was applied, so that its kernels and copies are complete by then.
Status NeighborExchange::run_steps() {
  const int lag = context_.device.staged ? 1 : 0;
  for (std::int64_t number = 0; number < layout_.segments().depth; ++number)
    SLIMPI_TRY(ring_.post(number));
  for (std::int64_t step = 0; step < layout_.segment_count() + 2 + 2 * lag; ++step) {
    SLIMPI_TRY(encode(step));
    SLIMPI_TRY(send(step - lag));
    SLIMPI_TRY(apply(step - 1 - lag));
    if (exists(step - 1 - 2 * lag)) SLIMPI_TRY(ring_.recycle(step - 1 - 2 * lag));
  }
  return ring_.finish_copies();
}

}  // namespace

Status run_neighbor_exchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                             PeerCodec& codec) {
  return NeighborExchange(context, shard, ranks, codec).run();
}

Status exchange_with_neighbors(comm::Call& call, comm::Range shard, std::span<const int> ranks,
                               PeerCodec& codec) {
  Context context = context_of(call);
  SLIMPI_TRY(find_streams(call, &context.streams));
  return run_neighbor_exchange(context, shard, ranks, codec);
}

namespace {

// Returns the peer of a member in a round-robin schedule, where every member meets every other in
// turn. In an odd group, two members are peers if their numbers add up to the round, modulo the
// group's size; a member that would be its own peer has none.
int opponent(int group_size, int me, std::uint64_t round) {
  if (group_size % 2 == 0)
    return peers_in_round(group_size, me, int(round % std::uint64_t(group_size - 1))).to;
  return (int(round % std::uint64_t(group_size)) - me + group_size) % group_size;
}

}  // namespace

Mixing mixing(Peers kind, int group_size, int me, std::uint64_t round,
              std::pmr::memory_resource* memory) {
  Mixing row{.peers = std::pmr::vector<Mixing::Peer>(memory)};
  if (group_size == 1) return row;
  switch (kind) {
    case Peers::ring: {
      const int left = (me + group_size - 1) % group_size, right = (me + 1) % group_size;
      // With two members, the neighbors on both sides are the same member, which counts once.
      if (left == right)
        row.peers = {{left, 1.0 / 2}};
      else
        row.peers = {{left, 1.0 / 3}, {right, 1.0 / 3}};
      break;
    }
    case Peers::shift_one:
      if (const int other = opponent(group_size, me, round); other != me)
        row.peers = {{other, 0.5}};
      break;
    case Peers::all:
      for (int other = 0; other < group_size; ++other)
        if (other != me) row.peers.push_back({other, 1.0 / group_size});
      break;
  }
  for (const Mixing::Peer& peer : row.peers) row.own -= peer.weight;
  return row;
}

}  // namespace slimpi::inter
