// SPDX-License-Identifier: BSD-3-Clause
#include "inter/pairwise_layout.h"

#include <algorithm>
#include <numeric>

namespace slimpi::inter {

StepPeers peers_in_round(int group_size, int me, int round) {
  if (group_size % 2 != 0)
    return {(me + round + 1) % group_size, (me - round - 1 + group_size) % group_size};
  // The circle method: the last member keeps its position and the others rotate. Two of them are
  // peers if their numbers add up to the round, modulo `around`; the member that would be its own
  // peer gets the last member.
  const int around = group_size - 1;
  int peer = 0;
  if (me == around) {
    peer = int(std::int64_t(round) * (group_size / 2) % around);  // half of round
  } else {
    peer = (round - me + around) % around;
    if (peer == me) peer = around;
  }
  return {peer, peer};
}

PairwiseSteps::PairwiseSteps(int group_size, int me, std::int64_t segments, int depth,
                             std::int64_t gap)
    : segments_(segments), gap_(gap), depth_(depth) {
  pair(group_size, me);
}

PairwiseSteps::PairwiseSteps(int group_size, int me, std::int64_t segments, int depth,
                             std::pmr::memory_resource* memory)
    : segments_(segments),
      gap_(0),
      depth_(depth),
      gathers_(false),
      peers_(memory),
      round_from_(memory) {
  pair(group_size, me);
}

void PairwiseSteps::pair(int group_size, int me) {
  round_from_.resize(std::size_t(group_size));
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
      peers_(std::size_t(peers), memory),
      round_from_(std::size_t(peers), memory) {
  for (int peer = 0; peer < peers; ++peer) peers_[std::size_t(peer)] = {peer, peer};
  std::iota(round_from_.begin(), round_from_.end(), 0);
}

Step PairwiseSteps::at(std::int64_t index) const {
  const std::int64_t number = index / cycle();
  const int within = int(index % cycle());
  if (within < rounds()) return {false, number < segments_ ? number : -1, within};
  return {true, number - gap_, within - rounds()};
}

bool PairwiseSteps::ready(std::int64_t index, std::int64_t finished) const {
  const Step step = at(index);
  const std::int64_t last_round = rounds() - 1;
  const std::int64_t last_in_place = index - depth_ * cycle() + (last_round - step.round);
  if (finished <= last_in_place) return false;
  return !step.gather || step.number < 0 || finished > step.number * cycle() + last_round;
}

PairwiseLayout::PairwiseLayout(const ExchangeSize& size)
    : me_(size.me),
      scatters_(true),
      gathers_(true),
      format_(size.format),
      segments_(segments_for(size)),
      steps_(size.group_size, size.me, segments_.longest, segments_.depth,
             size.segment_class == comm::SegmentClass::small ? 1 : 2) {
  chunks_.reserve(std::size_t(size.group_size));
  for (int member = 0; member < size.group_size; ++member)
    chunks_.push_back(comm::chunk_of(size.count, size.group_size, member, segments_.align));
}

namespace {
std::uint64_t longest_of(std::span<const comm::Range> chunks) {
  std::uint64_t longest = 0;
  for (const comm::Range& chunk : chunks) longest = std::max(longest, chunk.count);
  return longest;
}
}  // namespace

PairwiseLayout::PairwiseLayout(const ExchangeSize& size, std::span<const comm::Range> chunks,
                               std::pmr::memory_resource* memory)
    : me_(size.me),
      scatters_(true),
      gathers_(false),
      format_(size.format),
      segments_(scatter_segments(size, longest_of(chunks))),
      steps_(size.group_size, size.me, segments_.longest, segments_.depth, memory),
      chunks_(chunks.begin(), chunks.end(), memory) {}

PairwiseLayout::PairwiseLayout(const kernels::Format& format, std::uint64_t count, int peers,
                               const Segments& segments, std::pmr::memory_resource* memory)
    : me_(peers),
      scatters_(false),
      gathers_(true),
      format_(format),
      segments_(segments),
      steps_(peers, segments.longest, segments.depth, memory),
      chunks_(std::size_t(peers) + 1, {0, count}, memory) {}

comm::Range PairwiseLayout::segment(int member, std::int64_t number) const {
  const comm::Range& chunk = chunks_[std::size_t(member)];
  if (number < 0 || number >= count()) return {};
  const std::uint64_t first = std::uint64_t(number) * segments_.elements;
  // A shorter chunk than the longest may lack the last segments.
  if (first >= chunk.count) return {};
  return {chunk.first + first, std::min(segments_.elements, chunk.count - first)};
}

std::size_t PairwiseLayout::bytes_in_flight(const Step& step) const {
  const std::uint64_t most = std::max(sent_in(step).count, received_in(step).count);
  return most == 0 ? 0 : message_bytes(format_, most);
}

std::size_t PairwiseLayout::buffer(MessageKind message, std::int64_t number, int round) const {
  // In each place of the ring: where there is an all-gather, a buffer for each round of gather_in
  // and one for gather_out, and where there is a reduce-scatter, one for each round of its two
  // kinds.
  const std::size_t rounds = std::size_t(this->rounds()), each = std::size_t(round);
  if (!gathers_)
    return ring_index(number) * 2 * rounds + (message == MessageKind::scatter_in ? rounds : 0) +
           each;
  const std::size_t first = ring_index(number) * ((scatters_ ? 3 : 1) * rounds + 1);
  if (message == MessageKind::gather_out) return first + rounds;
  if (message == MessageKind::gather_in) return first + each;
  return first + (message == MessageKind::scatter_out ? 1 : 2) * rounds + 1 + each;
}

}  // namespace slimpi::inter
