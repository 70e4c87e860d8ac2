// SPDX-License-Identifier: BSD-3-Clause
// How a slice is cut into the messages of an exchange between nodes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/segment_class.h"
#include "kernels/format.h"

namespace slimpi::inter {

// Buffers for peers may take this much, or as much as the encoded slice, whichever is more.
constexpr std::size_t kMemoryFloor = 16 << 20;

// Chunks start at multiples of this many elements: the bucket.
std::uint64_t chunk_alignment(const kernels::Format& format);

struct Segments {
  std::uint64_t align;     // chunk_alignment
  std::uint64_t elements;  // of a segment; whole buckets
  std::int64_t longest;    // segments of the longest chunk
  int depth;               // segments under way at once
  std::size_t in_flight;   // bytes that a rank lets travel at once
  std::size_t message;     // bytes reserved for one message, header included
  std::size_t total;       // bytes for all of them
};

// `count` elements for `members` ranks, each of which owns one chunk.
Segments segments_for(const kernels::Format& format, std::uint64_t count, int group_size,
                      comm::SegmentClass segment_class, bool staged);

// Bytes of a message about `elements`, header included; a multiple of 4.
std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements);

}  // namespace slimpi::inter
