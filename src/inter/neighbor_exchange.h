// SPDX-License-Identifier: BSD-3-Clause
// Neighbor exchange: a rank sends the same message to each of a few peers, and receives one from
// each. The decentralized algorithms use it between nodes. The segments of the shard form a
// pipeline, so that encoding, sending and decoding overlap.
//
// Cost: a rank with k peers sends and receives k * n * bits/8 bytes, for any number of ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "inter/context.h"
#include "options/option_types.h"

namespace slimpi::inter {

// The arithmetic of an algorithm: encodes a segment, and decodes the peers' messages. Both
// functions only queue work on the call's stream. `part` is relative to the shard's first element.
class PeerCodec {
 public:
  virtual ~PeerCodec() = default;
  virtual void encode(const comm::Range& part, std::byte* payload) = 0;
  // Computes the result of a segment. `own` is the payload that encode() wrote, and `theirs` are
  // those of the peers, in the order of the ranks passed to exchange_with_neighbors().
  virtual void apply(const comm::Range& part, const std::byte* own,
                     std::span<const std::byte* const> theirs) = 0;
};

// Exchanges `shard` of the call's vector, encoded in the context's format, with `ranks`, each of
// which must call this function with the same format and shard. Needs neighbor_segments().total
// bytes of Context::messages, and as many of Context::staging if the device is staged (a GPU).
Status run_neighbor_exchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                             PeerCodec& codec);

// Runs run_neighbor_exchange() for a call, in the format of its plan.
Status exchange_with_neighbors(comm::Call& call, comm::Range shard, std::span<const int> ranks,
                               PeerCodec& codec);

// The peers of the decentralized algorithms and their weights: row `me` of the mixing matrix W,
// which is symmetric with rows that sum to one, so that the mean over the members stays the same.
struct Mixing {
  struct Peer {
    int member;
    double weight;
  };
  std::pmr::vector<Peer> peers;  // not `me`; in a ring left, then right; otherwise ascending
  double own = 1;                // weight of `me`: one minus the weights of the peers
};

// Returns row `me` of the mixing matrix. Its weights are, by `kind`:
//   ring       1/3 for the left peer, the right peer and `me`; with two members, 1/2 for the peer
//   shift_one  1/2 for one peer, which changes with `round`. Every pair exchanges once in
//              group_size - 1 rounds; if group_size is odd, in group_size rounds, in each of which
//              one member has no peer
//   all        1/group_size for every member
// Only shift_one depends on `round`. The row lies in `memory`.
Mixing mixing(Peers kind, int group_size, int me, std::uint64_t round,
              std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace slimpi::inter
