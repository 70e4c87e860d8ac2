// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/peers.h"

namespace slimpi::algorithm {

namespace {

// A round-robin tournament: in round t those meet whose numbers add up to t, modulo the odd number
// of places; the one who would meet himself meets the last of an even number, or sits out.
int opponent(int members, int me, std::uint64_t round) {
  const int places = members % 2 == 0 ? members - 1 : members;
  const int turn = int(round % std::uint64_t(places));
  const int last = members - 1;
  if (members % 2 == 0 && me == last) {
    for (int other = 0; other < places; ++other)
      if (2 * other % places == turn) return other;
  }
  const int other = (turn - me + places) % places;
  if (other != me) return other;
  return members % 2 == 0 ? last : me;
}

}  // namespace

Mixing mixing(Peers kind, int members, int me, std::uint64_t round) {
  Mixing row;
  if (members == 1) return row;
  switch (kind) {
    case Peers::ring: {
      const int left = (me + members - 1) % members, right = (me + 1) % members;
      if (left == right)
        row.peers = {{left, 1.0 / 2}};
      else
        row.peers = {{left, 1.0 / 3}, {right, 1.0 / 3}};
      break;
    }
    case Peers::shift_one:
      if (const int other = opponent(members, me, round); other != me) row.peers = {{other, 0.5}};
      break;
    case Peers::all:
      for (int other = 0; other < members; ++other)
        if (other != me) row.peers.push_back({other, 1.0 / members});
      break;
  }
  for (const Mixing::Peer& peer : row.peers) row.own -= peer.weight;
  return row;
}

}  // namespace slimpi::algorithm
