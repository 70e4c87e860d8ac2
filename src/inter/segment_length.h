// SPDX-License-Identifier: BSD-3-Clause
// Divides a shard (the values that the owners of all nodes exchange) into segments, each of which
// travels in one message. The division depends on ExchangeSize alone. algorithm/algorithm.cpp sets
// the segment class, for small or large messages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "comm/node_layout.h"
#include "comm/point_to_point.h"
#include "kernels/format.h"

namespace slimpi::inter {

// Everything that an exchange depends on, except the values. The same on all ranks of the
// inter-node group, except `staged` and `me`.
struct ExchangeSize {
  kernels::Format format;
  std::uint64_t count = 0;  // floats of the shard
  int group_size = 1;
  comm::SegmentClass segment_class = comm::SegmentClass::small;
  bool staged = false;
  int me = 0;

  auto words() const {
    return std::tuple(count, format.codec, format.bits, format.stochastic, format.bucket,
                      group_size, segment_class, staged, me);
  }
  bool operator==(const ExchangeSize& other) const { return words() == other.words(); }
  bool operator<(const ExchangeSize& other) const { return words() < other.words(); }
};

// The positions, lengths and peers of an exchange, computed once for all exchanges of one size.
// Does not change while exchanges use it, and refers to nothing outside itself.
class ExchangeLayout {
 public:
  ExchangeLayout() = default;
  virtual ~ExchangeLayout() = default;
  ExchangeLayout(const ExchangeLayout&) = delete;
  ExchangeLayout& operator=(const ExchangeLayout&) = delete;
};

// How many bytes the message buffers of an exchange may take, unless the encoded shard takes more.
constexpr std::size_t kMemoryFloor = 16 << 20;

// The division of the chunks of a shard. It is the same on all ranks except for `depth` and
// `total`, which depend on whether the rank's device is staged (a GPU).
struct Segments {
  std::uint64_t align;             // comm::chunk_alignment
  std::uint64_t elements;          // of a segment; whole buckets
  std::int64_t per_longest_chunk;  // segments of the longest chunk
  int depth;                       // pipeline depth: segments that have message buffers at a time
  std::size_t most_in_flight;      // bytes that a rank may have in flight in each direction
  std::size_t message;             // bytes reserved for one message, header included
  std::size_t total;               // bytes of all message buffers
};

// Returns the division of a shard of size.count elements among size.group_size ranks, each of which
// owns one chunk.
Segments segments_for(const ExchangeSize& size);

// Returns the division for a reduce-scatter alone whose longest chunk has `longest` elements.
Segments scatter_segments(const ExchangeSize& size, std::uint64_t longest);
// Returns the division for an all-gather alone whose longest chunk has `longest` elements.
Segments gather_segments(const ExchangeSize& size, std::uint64_t longest);

// Returns the division for a neighbor exchange, where each rank sends the whole shard to each of
// its peers (neighbor_exchange.h).
Segments neighbor_segments(const kernels::Format& format, std::uint64_t count, int peers,
                           bool staged);

// Returns the division for a hook's codec: segments of `piece` floats, in messages of at most
// `message` bytes.
Segments hook_segments(const ExchangeSize& size, std::uint64_t piece, std::size_t message);

// Returns the bytes of a message of `elements` values, header included. A multiple of 4.
std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements);

}  // namespace slimpi::inter
