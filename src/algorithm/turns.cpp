// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/turns.h"

namespace slimpi::algorithm {

Pair pair_in_round(int members, int me, int round) {
  if (members % 2 != 0) return {(me + round + 1) % members, (me - round - 1 + members) % members};
  // The last member stays in its place while the others move around a table: two of them meet when
  // their numbers add up to the round, and the one that would meet itself meets the last.
  const int around = members - 1;
  int peer = 0;
  if (me == around) {
    peer = int(std::int64_t(round) * (members / 2) % around);  // half of round
  } else {
    peer = (round - me + around) % around;
    if (peer == me) peer = around;
  }
  return {peer, peer};
}

Turns::Turns(int members, int me, std::int64_t segments, int slots, std::int64_t gap)
    : segments_(segments), gap_(gap), slots_(slots), round_from_(std::size_t(members)) {
  for (int round = 0; round < members - 1; ++round) {
    pairs_.push_back(pair_in_round(members, me, round));
    round_from_[std::size_t(pairs_.back().from)] = round;
  }
}

Turn Turns::at(std::int64_t index) const {
  const std::int64_t step = index / (2 * rounds());
  const int within = int(index % (2 * rounds()));
  if (within < rounds()) return {false, step < segments_ ? step : -1, within};
  return {true, step - gap_, within - rounds()};
}

bool Turns::ready(std::int64_t index, std::int64_t finished) const {
  const Turn turn = at(index);
  const std::int64_t step = 2 * rounds(), last_round = rounds() - 1;
  const std::int64_t last_in_place = index - slots_ * step + (last_round - turn.round);
  if (finished <= last_in_place) return false;
  return !turn.gather || turn.number < 0 || finished > turn.number * step + last_round;
}

}  // namespace slimpi::algorithm
