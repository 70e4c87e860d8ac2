// SPDX-License-Identifier: BSD-3-Clause
#include "inter/pipeline_plan.h"

#include <algorithm>

#include "codec/message_header.h"
#include "comm/node_layout.h"

namespace slimpi::inter {

namespace {

// Bytes of a segment: enough that the fixed cost of a message does not matter. UCX uses its
// rendezvous protocol for more than about 19 KiB over TCP, which costs four more messages.
constexpr std::size_t kSmallBytes = 16 << 10, kLargeBytes = 64 << 10;

// With segment class `large` a chunk has this many segments, so that the pipeline stages overlap.
constexpr std::size_t kPipeline = 4;

// Bytes in flight: enough that the link never waits for arithmetic, few enough that flows rarely
// compete for a link.
constexpr std::size_t kSmallInFlight = 144 << 10;

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

std::uint64_t bits_of(const kernels::Format& format) {
  if (format.codec == kernels::Codec::quantized) return format.bits;
  return format.codec == kernels::Codec::float32 ? 32 : 16;
}

std::size_t segment_bytes(comm::SegmentClass segment_class, std::size_t chunk_bytes) {
  if (segment_class == comm::SegmentClass::small) return kSmallBytes;
  return std::clamp(chunk_bytes / kPipeline, kSmallBytes, kLargeBytes);
}

}  // namespace

std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements) {
  return codec::kHeaderBytes + round_up(kernels::encoded_bytes(format, elements), 4);
}

Segments segments_for(const kernels::Format& format, std::uint64_t count, int group_size,
                      comm::SegmentClass segment_class, bool staged) {
  const std::size_t buffers = 3 * std::size_t(group_size - 1) + 1;
  Segments segments{};
  segments.align = comm::chunk_alignment(format);
  const std::uint64_t chunk =
      std::max<std::uint64_t>(comm::chunk_of(count, group_size, 0, segments.align).count, 1);
  const std::size_t bytes = segment_bytes(segment_class, kernels::encoded_bytes(format, chunk));
  segments.in_flight = std::max(kSmallInFlight, kPipeline * bytes);
  // The depth is the number of segments that may be in flight, plus those that are encoded, summed
  // and decoded. A GPU works asynchronously and gets its work a step earlier, so it needs three
  // more. Ranks with and without a GPU may take part in one call, so segment lengths use max_depth
  // on all ranks.
  const std::size_t steps = 2 * std::size_t(std::max(group_size - 1, 1));
  const std::uint64_t max_depth = segments.in_flight / bytes / steps + 7;
  std::uint64_t depth = staged ? max_depth : max_depth - 3;
  if (comm::one_bucket(format)) {  // a single bucket cannot be divided
    segments.elements = chunk;
    depth = 1;
  } else {
    const std::size_t most =
        std::max<std::size_t>(kMemoryFloor, kernels::encoded_bytes(format, count)) /
        (buffers * std::size_t(max_depth));
    const std::uint64_t buckets =
        std::max<std::uint64_t>(1, std::min(bytes, most) * 8 / bits_of(format) / segments.align);
    segments.elements = std::min(buckets * segments.align, chunk);
  }
  segments.longest = std::int64_t((chunk + segments.elements - 1) / segments.elements);
  depth = std::min(depth, std::uint64_t(segments.longest));
  segments.depth = int(depth);
  segments.message = round_up(message_bytes(format, segments.elements), 64);
  segments.total = segments.message * buffers * std::size_t(depth);
  return segments;
}

}  // namespace slimpi::inter
