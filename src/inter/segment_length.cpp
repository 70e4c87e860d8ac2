// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_length.h"

#include <algorithm>

#include "base/round_up.h"
#include "comm/message_header.h"
#include "comm/node_layout.h"

namespace slimpi::inter {

namespace {

// Bytes of a segment: enough that the fixed cost of a message does not matter. UCX uses its
// rendezvous protocol for more than about 19 KiB over TCP, which costs four more messages.
constexpr std::size_t kSmallBytes = 16 << 10, kLargeBytes = 64 << 10, kLongestBytes = 256 << 10;

// With the classes of longer segments a chunk has this many, so that the pipeline stages overlap.
constexpr std::size_t kPipeline = 4;

// Bytes in flight: enough that the link never waits for arithmetic, few enough that flows rarely
// compete for a link.
constexpr std::size_t kSmallInFlight = 144 << 10;

std::uint64_t bits_of(const kernels::Format& format) {
  return std::uint64_t(kernels::value_bits(format));
}

// Bytes of the longest group. Longer ones would save little more, and delay what follows.
constexpr std::size_t kGroupBytes = 1 << 20;

// How much may be in flight, and the depth that it takes. The depth is the number of groups that
// may be in flight, plus those that are encoded, summed and decoded. A GPU works asynchronously and
// gets its work a step earlier, so it needs three more. Ranks with and without a GPU may take part
// in one call, so lengths and groups use the depth of a GPU on all ranks.
struct Pipeline {
  // Of `bytes`, a segment's or a group's: a few short ones, or two long ones.
  Pipeline(std::size_t few, std::size_t bytes, std::size_t steps)
      : in_flight(std::max(few, 2 * bytes)), cycles(in_flight / bytes / steps), depth(cycles + 7) {}
  std::size_t in_flight, cycles, depth;
};

// Of the class's longest segments.
std::size_t longest_bytes(comm::SegmentClass segment_class) {
  return segment_class == comm::SegmentClass::longest ? kLongestBytes : kLargeBytes;
}

std::size_t segment_bytes(comm::SegmentClass segment_class, std::size_t chunk_bytes) {
  if (segment_class == comm::SegmentClass::small) return kSmallBytes;
  return std::clamp(chunk_bytes / kPipeline, kSmallBytes, longest_bytes(segment_class));
}

}  // namespace

std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements) {
  return comm::kHeaderBytes + round_up(kernels::encoded_bytes(format, elements), 4);
}

namespace {

// Of a segment of so many bytes: whole buckets.
std::uint64_t elements_for(const kernels::Format& format, std::size_t bytes, std::uint64_t align,
                           std::uint64_t chunk) {
  return std::min(std::max<std::uint64_t>(1, bytes * 8 / bits_of(format) / align) * align, chunk);
}

// The longest group whose message buffers take no more than schedule_for() lets a schedule have,
// and which the longest chunk is long enough for.
int group_for(const Segments& segments, int most, std::size_t few, std::size_t buffers,
              std::size_t steps, std::size_t encoded) {
  int group = most;
  for (; group > 1; group /= 2) {
    const std::size_t depth = Pipeline(few, segments.message * std::size_t(group), steps).depth;
    const std::size_t total = segments.message * buffers * depth * std::size_t(group);
    if (segments.longest >= 3 * group - 1 && total <= encoded + encoded / 2 + kMemoryFloor) break;
  }
  return group;
}

}  // namespace

Groups::Groups(std::int64_t segments, int most) : segments_(segments) {
  if (most == 1) return;
  std::int64_t length = 1;
  for (std::int64_t at = 0; at < segments; length *= 2) {
    starts_.push_back(at);
    const std::int64_t left = segments - at, end = std::max<std::int64_t>(most, left) / 2;
    length = std::min({length, std::int64_t(most), end, left});
    at += length;
  }
}

Segments segments_for(const ExchangeSize& size) {
  const kernels::Format& format = size.format;
  const std::size_t buffers = 3 * std::size_t(size.group_size - 1) + 1;
  const std::size_t steps = 2 * std::size_t(std::max(size.group_size - 1, 1));
  const std::size_t encoded = kernels::encoded_bytes(format, size.count);
  Segments segments{};
  segments.align = comm::chunk_alignment(format);
  const std::uint64_t chunk = std::max<std::uint64_t>(
      comm::chunk_of(size.count, size.group_size, 0, segments.align).count, 1);
  const std::size_t bytes =
      segment_bytes(size.segment_class, kernels::encoded_bytes(format, chunk));
  const std::size_t few = std::max(kSmallInFlight, kPipeline * bytes);
  const bool one = comm::one_bucket(format);  // a single bucket cannot be divided
  const std::size_t most =
      std::max<std::size_t>(kMemoryFloor, encoded) / (buffers * Pipeline(few, bytes, steps).depth);
  segments.elements =
      one ? chunk : elements_for(format, std::min(bytes, most), segments.align, chunk);
  segments.longest = std::int64_t((chunk + segments.elements - 1) / segments.elements);
  segments.message = round_up(message_bytes(format, segments.elements), 64);
  segments.group = size.segment_class == comm::SegmentClass::small || one
                       ? 1
                       : group_for(segments, int(kGroupBytes / longest_bytes(size.segment_class)),
                                   few, buffers, steps, encoded);
  const Pipeline pipeline(
      few, segments.group == 1 ? bytes : segments.message * std::size_t(segments.group), steps);
  segments.in_flight = pipeline.in_flight;
  // Groups differ in length, so the bytes in flight are no limit to their number.
  segments.most_cycles =
      segments.group == 1 ? segments.longest + 2 : std::int64_t(pipeline.cycles) + 1;
  const std::int64_t depth =
      one ? 1
          : std::int64_t(pipeline.depth) -
                (size.staged || size.segment_class != comm::SegmentClass::small ? 0 : 3);
  segments.depth = int(std::min(depth, Groups(segments.longest, segments.group).count()));
  segments.total =
      segments.message * buffers * std::size_t(segments.depth) * std::size_t(segments.group);
  return segments;
}

}  // namespace slimpi::inter
