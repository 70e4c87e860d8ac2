// SPDX-License-Identifier: BSD-3-Clause
// How a shard is divided into the segments, and so the messages, of an inter-node exchange.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "inter/exchange_layout.h"
#include "kernels/format.h"

namespace slimpi::inter {

// Message buffers may take this many bytes, or as much as the encoded shard, whichever is more.
constexpr std::size_t kMemoryFloor = 16 << 20;

// Made from what all ranks know. Only depth and total differ between ranks with and without a
// staged device; lengths and groups are the same on all ranks.
struct Segments {
  std::uint64_t align;       // comm::chunk_alignment
  std::uint64_t elements;    // of a segment; whole buckets
  std::int64_t longest;      // segments of the longest chunk
  int group;                 // segments of the longest group
  int depth;                 // pipeline depth: groups that have message buffers at a time
  std::size_t in_flight;     // bytes that a rank may have in flight, in each direction
  std::int64_t most_cycles;  // cycles of PairwiseSteps that a rank may have in flight
  std::size_t message;       // bytes reserved for one message, header included
  std::size_t total;         // bytes of all message buffers
};

// A device works on groups of consecutive segments: one kernel, one copy and one event for all of a
// group, as each costs the CPU some microseconds however short the segments are. Groups are 1, 2,
// 4, ... segments long, so that the first message leaves early. In the end they are half as long as
// the longest, so that the last ones arrive early. Every message is of one segment all the same.
class Groups {
 public:
  // The groups of a chunk of so many segments; `most` is a power of two.
  Groups(std::int64_t segments, int most);

  std::int64_t count() const { return starts_.empty() ? segments_ : std::int64_t(starts_.size()); }
  // The first segment of a group; that of group count() is the end.
  std::int64_t first(std::int64_t number) const {
    if (starts_.empty()) return number;
    return number < count() ? starts_[std::size_t(number)] : segments_;
  }

 private:
  std::int64_t segments_;
  std::vector<std::int64_t> starts_;  // empty where each segment is a group
};

// For a shard of size.count elements among size.group_size ranks, each of which owns one chunk.
Segments segments_for(const ExchangeSize& size);

// Bytes of a message of `elements` values, header included; a multiple of 4.
std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements);

}  // namespace slimpi::inter
