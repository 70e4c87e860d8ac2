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

#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

// What a worker says of a segment and what it does with the answers. Both queue work on the call's
// stream and wait for nothing. `part` counts from the slice's first element.
class Talk {
 public:
  virtual ~Talk() = default;
  // Writes the encoded segment to `code`.
  virtual void say(const Range& part, std::byte* code) = 0;
  // Gets what say wrote, and the peers' codes in the order of the ranks.
  virtual void hear(const Range& part, const std::byte* own,
                    std::span<const std::byte* const> theirs) = 0;
};

// Exchanges `slice` of the call's vector, coded as `format`, with `ranks`; every one of them calls
// this with the same format and slice. Needs peer_exchange_bytes of scratch.
Status exchange_with_peers(Call& call, const kernels::Format& format, Range slice,
                           const std::vector<int>& ranks, Talk& talk);

// Bytes of scratch in device and in staging memory for `peers` peers.
std::size_t peer_exchange_bytes(const kernels::Format& format, std::uint64_t count, int peers,
                                bool staged);

}  // namespace slimpi::algorithm
