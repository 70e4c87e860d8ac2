// SPDX-License-Identifier: BSD-3-Clause
#include "inter/mixing.h"

namespace slimpi::inter {

namespace {

// A round-robin schedule: in round t two members are peers if their numbers add up to t modulo
// `places`, which is odd. The member that would be its own peer gets the last member if group_size
// is even; if it is odd it has no peer.
int opponent(int group_size, int me, std::uint64_t round) {
  const int places = group_size % 2 == 0 ? group_size - 1 : group_size;
  const int step = int(round % std::uint64_t(places));
  const int last = group_size - 1;
  if (group_size % 2 == 0 && me == last) {
    for (int other = 0; other < places; ++other)
      if (2 * other % places == step) return other;
  }
  const int other = (step - me + places) % places;
  if (other != me) return other;
  return group_size % 2 == 0 ? last : me;
}

}  // namespace

Mixing mixing(Peers kind, int group_size, int me, std::uint64_t round,
              std::pmr::memory_resource* memory) {
  Mixing row{.peers = std::pmr::vector<Mixing::Peer>(memory)};
  if (group_size == 1) return row;
  switch (kind) {
    case Peers::ring: {
      const int left = (me + group_size - 1) % group_size, right = (me + 1) % group_size;
      // Two members: the neighbor on both sides is the same one, and it counts once.
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
  // The rows sum to one, and the weights are symmetric: the mean of all models stays.
  for (const Mixing::Peer& peer : row.peers) row.own -= peer.weight;
  return row;
}

}  // namespace slimpi::inter
