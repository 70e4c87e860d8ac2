// SPDX-License-Identifier: BSD-3-Clause
// The steps of the pairwise exchange between the members of an inter-node group, and the elements,
// message buffers and requests of each step. In each step a rank sends a segment (the values of one
// message) to one member and receives a segment from one member, so the number of messages that it
// has in flight does not grow with the number of members. All exchanges of one size have the same
// steps.
//
// The message buffers form a ring: segment n of each chunk uses those of ring index n modulo the
// pipeline depth, and segment n + depth reuses them.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "comm/node_layout.h"
#include "inter/context.h"
#include "inter/segment_length.h"

namespace slimpi::inter {

// Returns the member that `me` sends to in `round`, 0 to group_size - 2, and the one that it
// receives from. Over all rounds, each other member is `to` once and `from` once. If group_size is
// even, members exchange in pairs (to == from). If it is odd, members send around a ring, because
// pairs would leave one member out of each round.
struct StepPeers {
  int to, from;
};
StepPeers peers_in_round(int group_size, int me, int round);

// One step of a rank. In a reduce-scatter step, the rank sends its values of a segment to the
// member that adds up this segment (the owner of its chunk). In an all-gather step, it sends the
// sum of a segment of its own chunk to another member.
struct Step {
  bool gather;          // false: reduce-scatter; true: all-gather
  std::int64_t number;  // of the segment; negative: no message
  int round;
};

// The phases of an exchange: a reduce-scatter, an all-gather, or both.
struct Phases {
  bool scatters = true, gathers = true;
  int count() const { return int(scatters) + int(gathers); }
};

// The sequence of steps, which has the same segments and rounds on every rank, in cycles of 2 *
// rounds() steps. Cycle k runs the reduce-scatter of segment k, one step per round, and then the
// all-gather of segment k - gap. With one phase a cycle has rounds() steps.
class PairwiseSteps {
 public:
  // `depth` segments of a chunk have message buffers at a time. The all-gather follows the
  // reduce-scatter by `gap` cycles, which is 0 with one phase. The lists are in `memory`.
  PairwiseSteps(int group_size, int me, std::int64_t segments, int depth, Phases phases,
                std::int64_t gap,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  // Makes the steps of an all-gather alone, where member i is the peer of round i. The lists are in
  // `memory`.
  PairwiseSteps(int peers, std::int64_t segments, int depth, std::pmr::memory_resource* memory);

  int rounds() const { return int(peers_.size()); }
  std::int64_t segment_count() const { return segments_; }
  std::int64_t step_count() const { return (segments_ + gap_) * cycle(); }
  Step at(std::int64_t index) const;
  const StepPeers& peers_in(int round) const { return peers_[std::size_t(round)]; }
  int round_from(int member) const { return round_from_[std::size_t(member)]; }

  // Returns whether the message of step `index` can be made once the first `finished` steps are
  // complete: whether all messages that it depends on have then arrived and its message buffer is
  // free.
  bool ready(std::int64_t index, std::int64_t finished) const;

 private:
  std::int64_t cycle() const { return phases_.count() * rounds(); }

  std::int64_t segments_, gap_;
  int depth_;  // pipeline depth
  Phases phases_;
  std::pmr::vector<StepPeers> peers_;  // by round
  std::pmr::vector<int> round_from_;   // by member: the round in which it is `from`
};

// The kinds of messages with one segment of a chunk: received or sent in the all-gather (gather_in,
// gather_out) or in the reduce-scatter (scatter_in, scatter_out). Each round has a message of each
// kind, except that the peers of all rounds receive the same gather_out.
enum class MessageKind { gather_in, gather_out, scatter_out, scatter_in };

// The segments, message buffers and requests of all steps of a pairwise or neighbor exchange.
class SegmentedLayout : public ExchangeLayout {
 public:
  // Makes the layout of a reduce-scatter and all-gather, with the same order of steps on all ranks.
  // The all-gather of a segment comes one cycle after its reduce-scatter with SegmentClass::small,
  // and two with SegmentClass::large, so that a GPU never waits for the host.
  explicit SegmentedLayout(const ExchangeSize& size) : SegmentedLayout(size, segments_for(size)) {}
  // Makes the layout of a reduce-scatter and all-gather with the given segments, such as
  // hook_segments(), in `memory`.
  SegmentedLayout(const ExchangeSize& size, const Segments& segments,
                  std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  // Makes the layout of one phase alone, in `memory`. In a reduce-scatter each member keeps the sum
  // of its chunk; in an all-gather each member starts with its chunk. `chunks` has the chunks by
  // member.
  SegmentedLayout(const ExchangeSize& size, std::span<const comm::Range> chunks,
                  const Segments& segments, Phases phases, std::pmr::memory_resource* memory);
  // Makes the layout of a neighbor exchange in `memory`: every rank owns a whole shard, and gathers
  // the shards of its peers, the members 0 to peers - 1. The rank itself is member `peers`.
  SegmentedLayout(const kernels::Format& format, std::uint64_t count, int peers,
                  const Segments& segments, std::pmr::memory_resource* memory);

  const Segments& segments() const { return segments_; }
  const PairwiseSteps& steps() const { return steps_; }
  int rounds() const { return steps_.rounds(); }
  int me() const { return me_; }
  bool scatters() const { return phases_.scatters; }
  bool gathers() const { return phases_.gathers; }
  const comm::Range& chunk(int member) const { return chunks_[std::size_t(member)]; }

  // Returns the number of segments of the longest chunk.
  std::int64_t segment_count() const { return steps_.segment_count(); }
  // Returns segment `number` of a member's chunk, relative to the shard's first element; empty if
  // that chunk is shorter.
  comm::Range segment(int member, std::int64_t number) const;

  // Return the segments that a step sends and receives, empty if there is no message.
  comm::Range sent_in(const Step& step) const {
    return segment(step.gather ? me_ : to(step), step.number);
  }
  comm::Range received_in(const Step& step) const {
    if (step.gather ? !gathers() : !scatters()) return {};
    return segment(step.gather ? from(step) : me_, step.number);
  }
  int to(const Step& step) const { return steps_.peers_in(step.round).to; }
  int from(const Step& step) const { return steps_.peers_in(step.round).from; }
  comm::Tag tag_of(const Step& step) const {
    return step.gather ? gather_tag_ : comm::Tag::reduce_scatter;
  }

  // Returns the bytes of a step's sent or received message, whichever is longer.
  std::size_t bytes_in_flight(const Step& step) const;

  std::size_t ring_index(std::int64_t number) const {
    return std::size_t(number % segments_.depth);
  }
  std::size_t buffer(MessageKind message, std::int64_t number, int round) const;
  std::size_t buffers() const { return segments_.total / segments_.message; }
  // A gather_out buffer has one request per round.
  std::size_t request(MessageKind message, const Step& step) const {
    return (ring_index(step.number) * 4 + std::size_t(message)) * std::size_t(rounds()) +
           std::size_t(step.round);
  }
  std::size_t requests() const { return std::size_t(segments_.depth) * 4 * std::size_t(rounds()); }

 private:
  const int me_;
  const Phases phases_;
  const comm::Tag gather_tag_ = comm::Tag::all_gather;
  const kernels::Format format_;
  const Segments segments_;
  const PairwiseSteps steps_;
  std::pmr::vector<comm::Range> chunks_;  // by member
};

class ChunkCodec;

// Runs the phases of the layout with the arithmetic of `codec`. `ranks` are those of the members.
Status run_pairwise(const Context& context, const SegmentedLayout& layout,
                    std::span<const int> ranks, comm::Range shard, ChunkCodec& codec);

}  // namespace slimpi::inter
