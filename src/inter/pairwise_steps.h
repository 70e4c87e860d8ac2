// SPDX-License-Identifier: BSD-3-Clause
// The order in which the members of an exchange hand each other the segments of their chunks. In
// each turn a rank sends to one member and receives from one, so no link carries more messages than
// its rank lets travel at once, however many take part.
#pragma once
#include <cstdint>
#include <vector>

namespace slimpi::inter {

// The peers of member `me` of `members` in `round`, 0 to members - 2; each other member comes once
// in both roles. An even number of members swap in pairs (to == from); an odd number, of which one
// would be left over each time, send around a ring.
struct StepPeers {
  int to, from;
};
StepPeers peers_in_round(int group_size, int me, int round);

// What a rank does at one time: hand a piece of another's chunk to its owner, or the sum of its own
// to another.
struct Step {
  bool gather;
  std::int64_t number;  // of the segment; negative: nothing to do
  int round;
};

// Step k scatters segment k, a turn a round, and then gathers segment k - gap.
class PairwiseSteps {
 public:
  // `slots` segments have a place for their messages at a time.
  PairwiseSteps(int group_size, int me, std::int64_t segments, int depth, std::int64_t gap);

  int rounds() const { return int(peers_.size()); }
  std::int64_t segments() const { return segments_; }
  std::int64_t count() const { return (segments_ + gap_) * 2 * rounds(); }
  Step at(std::int64_t index) const;
  const StepPeers& peers_in(int round) const { return peers_[std::size_t(round)]; }
  int round_from(int member) const { return round_from_[std::size_t(member)]; }

  // Whether what a turn sends can be made once the first `finished` turns are over: what it is made
  // from has arrived, and its place is free.
  bool ready(std::int64_t index, std::int64_t finished) const;

 private:
  std::int64_t segments_, gap_;
  int depth_;
  std::vector<StepPeers> peers_;
  std::vector<int> round_from_;
};

}  // namespace slimpi::inter
