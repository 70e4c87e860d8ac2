// SPDX-License-Identifier: BSD-3-Clause
#include "inter/pairwise_steps.h"

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

PairwiseSteps::PairwiseSteps(int group_size, int me, std::int64_t groups, int depth,
                             std::int64_t gap)
    : groups_(groups), gap_(gap), depth_(depth), round_from_(std::size_t(group_size)) {
  peers_.reserve(std::size_t(group_size));
  for (int round = 0; round < group_size - 1; ++round) {
    peers_.push_back(peers_in_round(group_size, me, round));
    round_from_[std::size_t(peers_.back().from)] = round;
  }
}

Step PairwiseSteps::at(std::int64_t index) const {
  const std::int64_t cycle = index / (2 * rounds());
  const int within = int(index % (2 * rounds()));
  if (within < rounds()) return {false, cycle < groups_ ? cycle : -1, within};
  return {true, cycle - gap_, within - rounds()};
}

bool PairwiseSteps::ready(std::int64_t index, std::int64_t finished) const {
  const Step step = at(index);
  const std::int64_t cycle = 2 * rounds(), last_round = rounds() - 1;
  const std::int64_t last_in_place = index - depth_ * cycle + (last_round - step.round);
  if (finished <= last_in_place) return false;
  return !step.gather || step.number < 0 || finished > step.number * cycle + last_round;
}

}  // namespace slimpi::inter
