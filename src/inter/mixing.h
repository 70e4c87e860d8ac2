// SPDX-License-Identifier: BSD-3-Clause
// Who talks to whom in the decentralized pair, and how much each counts: row `me` of a mixing
// matrix W that is symmetric and whose rows sum to one, so that the mean over the workers stays.
#pragma once
#include <cstdint>
#include <vector>

#include "base/option_types.h"

namespace slimpi::inter {

struct Mixing {
  struct Peer {
    int member;
    double weight;
  };
  std::vector<Peer> peers;  // never `me`, each once; ring: left, right; else ascending
  double own = 1;           // weight of `me`: what the peers leave of one
};

//   ring       two node-local ranks and oneself, 1/3 each; of two workers each has one node-local
//   rank, 1/2 shift_one  one peer, 1/2; who it is turns with `round`, every pair meets once in
//   `members`
//              rounds (one round fewer when that is even); of an odd number one sits out
//   all        everyone, 1/members
// The others do not look at `round`.
Mixing mixing(Peers kind, int group_size, int me, std::uint64_t round);

}  // namespace slimpi::inter
