// SPDX-License-Identifier: BSD-3-Clause
// The size on which the exchange of a shard between nodes depends, and its division:
// how a shard is divided into the segments, and so the messages, of an inter-node exchange. The
// class, for small or large messages, is set in algorithm/algorithm.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "comm/node_layout.h"
#include "comm/point_to_point.h"
#include "kernels/format.h"

namespace slimpi::inter {

// All that the exchange depends on, apart from the values. `staged` and `me` are this rank's; the
// rest is the same on all members of the inter-node group.
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

// Positions, lengths and peers, computed once for all exchanges of one size. Nothing in a layout
// changes while exchanges use it, and it refers to nothing outside itself.
class ExchangeLayout {
 public:
  ExchangeLayout() = default;
  virtual ~ExchangeLayout() = default;
  ExchangeLayout(const ExchangeLayout&) = delete;
  ExchangeLayout& operator=(const ExchangeLayout&) = delete;
};

// Message buffers may take this many bytes, or as much as the encoded shard, whichever is more.
constexpr std::size_t kMemoryFloor = 16 << 20;

// Made from what all ranks know. Only depth and total differ between ranks with and without a
// staged device; lengths are the same on all ranks.
struct Segments {
  std::uint64_t align;     // comm::chunk_alignment
  std::uint64_t elements;  // of a segment; whole buckets
  std::int64_t longest;    // segments of the longest chunk
  int depth;               // pipeline depth: segments that have message buffers at a time
  std::size_t in_flight;   // bytes that a rank may have in flight, in each direction
  std::size_t message;     // bytes reserved for one message, header included
  std::size_t total;       // bytes of all message buffers
};

// For a shard of size.count elements among size.group_size ranks, each of which owns one chunk.
Segments segments_for(const ExchangeSize& size);

// The same without an all-gather, for chunks of which the longest has `longest` elements.
Segments scatter_segments(const ExchangeSize& size, std::uint64_t longest);

// The same where each rank owns all of the shard and sends it to each of its peers
// (neighbor_exchange.h).
Segments neighbor_segments(const kernels::Format& format, std::uint64_t count, int peers,
                           bool staged);

// The same for pieces of a hook's codec: so many floats in a segment, in messages of so many bytes
// at most.
Segments hook_segments(const ExchangeSize& size, std::uint64_t piece, std::size_t message);

// Bytes of a message of `elements` values, header included; a multiple of 4.
std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements);

}  // namespace slimpi::inter
