// SPDX-License-Identifier: BSD-3-Clause
// The order of a pairwise exchange: in each step a rank sends the messages of one group of segments
// to one member and receives those of one from one. So a link carries no more messages than its
// rank has in flight, however many members there are.
#pragma once
#include <cstdint>
#include <vector>

namespace slimpi::inter {

// The peers of member `me` in `round`, 0 to group_size - 2. Over all rounds each other member is
// `to` once and `from` once. If group_size is even, members exchange in pairs (to == from). If it
// is odd, one member would be left over in each round, so they send around a ring.
struct StepPeers {
  int to, from;
};
StepPeers peers_in_round(int group_size, int me, int round);

// One step of a rank. Reduce-scatter: it sends a group of another member's chunk to its owner.
// All-gather: it sends the sum of a group of its own chunk to another member.
struct Step {
  bool gather;          // false: reduce-scatter; true: all-gather
  std::int64_t number;  // of the group; negative: no message
  int round;
};

// The sequence of steps, in cycles of 2 * rounds() steps. Cycle k does the reduce-scatter of
// group k, one step per round, and then the all-gather of group k - gap. Every rank has the same
// sequence of groups and rounds.
class PairwiseSteps {
 public:
  // `depth` groups have message buffers at a time.
  PairwiseSteps(int group_size, int me, std::int64_t groups, int depth, std::int64_t gap);

  int rounds() const { return int(peers_.size()); }
  std::int64_t groups() const { return groups_; }
  std::int64_t count() const { return (groups_ + gap_) * 2 * rounds(); }
  Step at(std::int64_t index) const;
  const StepPeers& peers_in(int round) const { return peers_[std::size_t(round)]; }
  int round_from(int member) const { return round_from_[std::size_t(member)]; }

  // Whether the message of step `index` can be made when the first `finished` steps are complete:
  // what it is made from has arrived, and its message buffer is free.
  bool ready(std::int64_t index, std::int64_t finished) const;

 private:
  std::int64_t groups_, gap_;
  int depth_;                     // pipeline depth
  std::vector<StepPeers> peers_;  // by round
  std::vector<int> round_from_;   // the round in which a member is `from`; by member
};

}  // namespace slimpi::inter
