// SPDX-License-Identifier: BSD-3-Clause
// Neighbor exchange: the same message to each of a few peers, and one message from each. It is what
// the decentralized algorithms do between nodes. The segments of the shard form a pipeline, so that
// encoding, sending and decoding overlap.
//
// Cost: with k peers, k * n * bits/8 bytes sent and received by every rank, however many ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "inter/context.h"
#include "options/option_types.h"

namespace slimpi::inter {

// How an algorithm encodes a segment, and decodes the messages of the peers. Both functions
// only queue work on the call's stream. `part` counts from the first element of the shard.
class PeerCodec {
 public:
  virtual ~PeerCodec() = default;
  virtual void encode(const comm::Range& part, std::byte* payload) = 0;
  // Uses `own`, which encode wrote, and `theirs`, the peers' encoded segments, in the order of the
  // ranks passed to exchange_with_neighbors.
  virtual void apply(const comm::Range& part, const std::byte* own,
                     std::span<const std::byte* const> theirs) = 0;
};

// Exchanges `shard` of the call's vector, encoded in the context's format, with `ranks`. Each of
// these ranks must call this with the same format and shard. Needs scratch of
// neighbor_segments().total bytes: of `messages`, and of `staging` if the device is staged.
Status run_neighbor_exchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                             PeerCodec& codec);

// The same for a call, in the format of its plan.
Status exchange_with_neighbors(comm::Call& call, comm::Range shard, std::span<const int> ranks,
                               PeerCodec& codec);

// The peers of the decentralized algorithms and their weights: row `me` of the mixing matrix W. W
// is symmetric and its rows sum to one, so that the mean over the members does not change.
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
