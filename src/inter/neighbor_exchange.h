// SPDX-License-Identifier: BSD-3-Clause
// One message to each of a few peers, the same to all, and one from each: what the decentralized
// pair does between nodes. Segments of the slice flow one behind the other, so that encoding,
// sending and decoding overlap.
//
// Cost: with k peers, k * n * bits/8 bytes sent and received by every rank, however many ranks.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "comm/call.h"

namespace slimpi::inter {

// What a worker says of a segment and what it does with the answers. Both queue work on the call's
// stream and wait for nothing. `part` counts from the slice's first element.
class PeerCodec {
 public:
  virtual ~PeerCodec() = default;
  // Writes the encoded segment to `code`.
  virtual void encode(const comm::Range& part, std::byte* code) = 0;
  // Gets what say wrote, and the peers' codes in the order of the ranks.
  virtual void apply(const comm::Range& part, const std::byte* own,
                     std::span<const std::byte* const> theirs) = 0;
};

// Exchanges `slice` of the call's vector, coded as `format`, with `ranks`; every one of them calls
// this with the same format and slice. Needs neighbor_exchange_bytes of scratch.
Status exchange_with_neighbors(comm::Call& call, const kernels::Format& format, comm::Range shard,
                               const std::vector<int>& ranks, PeerCodec& codec);

// Bytes of scratch in device and in staging memory for `peers` peers.
std::size_t neighbor_exchange_bytes(const kernels::Format& format, std::uint64_t count, int peers,
                                    bool staged);

}  // namespace slimpi::inter
