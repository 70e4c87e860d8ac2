// SPDX-License-Identifier: BSD-3-Clause
#include "inter/mixing.h"

#include "inter/pairwise_layout.h"

namespace slimpi::inter {

namespace {

// A round-robin schedule: every member is a peer of every other one in turn. In a round of an odd
// group two members are peers if their numbers add up to the round, modulo the group's size; the
// member that would be its own peer has none.
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
