// SPDX-License-Identifier: BSD-3-Clause
// The peers of the decentralized algorithms and their weights: row `me` of the mixing matrix W. W
// is symmetric and its rows sum to one, so that the mean over the members does not change.
#pragma once
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "options/option_types.h"

namespace slimpi::inter {

struct Mixing {
  struct Peer {
    int member;
    double weight;
  };
  std::pmr::vector<Peer> peers;  // never `me`, each once; ring: left, right; else ascending
  double own = 1;                // weight of `me`: one minus the weights of the peers
};

//   ring       the left peer, the right peer and `me`, 1/3 each;
//              of two members both have one peer, 1/2
//   shift_one  one peer, 1/2. It changes with `round`: every pair exchanges once in group_size
//              rounds (one round fewer if that is even); of an odd number one member has no peer
//   all        every member, 1/group_size
// Only shift_one depends on `round`. The row lives in `memory`.
Mixing mixing(Peers kind, int group_size, int me, std::uint64_t round,
              std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace slimpi::inter
