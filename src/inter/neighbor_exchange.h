// SPDX-License-Identifier: BSD-3-Clause
// Neighbor exchange: the same message to each of a few peers, and one message from each. It is what
// the decentralized algorithms do between nodes. The segments of the shard form a pipeline, so that
// encoding, sending and decoding overlap.
//
// Cost: with k peers, k * n * bits/8 bytes sent and received by every rank, however many ranks.
#pragma once
#include <cstddef>
#include <span>

#include "inter/context.h"

namespace slimpi::inter {

// What an algorithm sends for a segment and what it does with the peers' messages. Both functions
// only queue work on the call's stream. `part` counts from the first element of the shard.
class PeerCodec {
 public:
  virtual ~PeerCodec() = default;
  // Writes the encoded segment to `payload`.
  virtual void encode(const comm::Range& part, std::byte* payload) = 0;
  // Uses `own`, which encode wrote, and `theirs`, the peers' encoded segments, in the order of the
  // ranks passed to exchange_with_neighbors.
  virtual void apply(const comm::Range& part, const std::byte* own,
                     std::span<const std::byte* const> theirs) = 0;
};

// Exchanges `shard` of the call's vector, encoded in the context's format, with `ranks`. Each of
// these ranks must call this with the same format and shard. Needs neighbor_exchange_bytes of
// scratch.
Status run_neighbor_exchange(const Context& context, comm::Range shard, std::span<const int> ranks,
                             PeerCodec& codec);

// The same for a call, in the format of its plan.
Status exchange_with_neighbors(comm::Call& call, comm::Range shard, std::span<const int> ranks,
                               PeerCodec& codec);

// Bytes of scratch for `peers` peers: of `messages`, and also of `staging` if the device is staged.
std::size_t neighbor_exchange_bytes(const kernels::Format& format, std::uint64_t count, int peers,
                                    bool staged);

}  // namespace slimpi::inter
