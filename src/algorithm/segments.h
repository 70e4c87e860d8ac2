// SPDX-License-Identifier: BSD-3-Clause
// How a slice is cut into the messages of an exchange between nodes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/format.h"

namespace slimpi::algorithm {

// Bytes that a rank lets travel at once: enough that the link never waits for arithmetic, few
// enough that flows rarely meet.
constexpr std::size_t kInFlight = 144 << 10;

// Buffers for peers may take this much, or as much as the encoded slice, whichever is more.
constexpr std::size_t kMemoryFloor = 16 << 20;

struct Segments {
  std::uint64_t align;     // chunks start at multiples of this: the bucket
  std::uint64_t elements;  // of a segment; whole buckets
  std::int64_t longest;    // segments of the longest chunk
  int slots;               // segments under way at once
  std::size_t message;     // bytes reserved for one message, header included
  std::size_t total;       // bytes for all of them
};

// `count` elements for `members` ranks, each of which owns one chunk.
Segments segments_for(const kernels::Format& format, std::uint64_t count, int members, bool staged);

// Bytes of a message about `elements`, header included; a multiple of 4.
std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements);

}  // namespace slimpi::algorithm
