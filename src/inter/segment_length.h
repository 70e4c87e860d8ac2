// SPDX-License-Identifier: BSD-3-Clause
// How a shard is divided into the segments, and so the messages, of an inter-node exchange. The
// class, for small or large messages, is set in algorithm/reserve_call.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "inter/exchange_layout.h"
#include "kernels/format.h"

namespace slimpi::inter {

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

// Bytes of a message of `elements` values, header included; a multiple of 4.
std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements);

}  // namespace slimpi::inter
