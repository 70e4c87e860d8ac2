// SPDX-License-Identifier: BSD-3-Clause
#include "inter/segment_length.h"

#include <algorithm>

#include "base/round_up.h"
#include "comm/message_header.h"
#include "comm/node_layout.h"

namespace slimpi::inter {

namespace {

// The encoded bytes of a segment: kSmallBytes with SegmentClass::small; with SegmentClass::large up
// to kLargeBytes, where the fixed cost of a message no longer matters. Small segments stay below
// about 19 KiB, because above that UCX over TCP uses its rendezvous protocol, which costs four more
// messages.
constexpr std::size_t kSmallBytes = 16 << 10, kLargeBytes = 288 << 10;
constexpr std::size_t kNeighborBytes = 64 << 10;  // of a segment of a neighbor exchange

// With SegmentClass::large a chunk has at least kPipeline segments, so that the pipeline stages
// overlap. If these would be shorter than kDeviceBytes, kShortPipeline segments suffice: a rank
// waits about 15 us for its GPU in every step, and the transfer of a message should not be shorter
// than that.
constexpr std::size_t kPipeline = 4, kShortPipeline = 2, kDeviceBytes = 64 << 10;

// As many bytes as this may always be in flight: enough that the link never waits for arithmetic,
// and few enough that flows rarely compete for a link.
constexpr std::size_t kSmallInFlight = 144 << 10;

// How many segments are being encoded, summed or decoded at a time. With a GPU or with
// SegmentClass::large there are kLateStages more, because a GPU gets its work some steps ahead.
constexpr int kStages = 4, kLateStages = 3;

// Returns the bytes of a segment for a chunk of `chunk_bytes` encoded bytes.
std::size_t segment_bytes(comm::SegmentClass segment_class, std::size_t chunk_bytes) {
  if (segment_class == comm::SegmentClass::small) return kSmallBytes;
  const std::size_t bytes =
      std::max(chunk_bytes / kPipeline, std::min(chunk_bytes / kShortPipeline, kDeviceBytes));
  return std::clamp(bytes, kSmallBytes, kLargeBytes);
}

// Divides the chunks. `chunk` is the number of elements of the longest chunk, `buffers` the message
// buffers that one segment of each chunk needs, and `steps` the steps in which a segment travels.
Segments divide(const ExchangeSize& size, std::uint64_t chunk, std::size_t buffers,
                std::size_t steps) {
  const kernels::Format& format = size.format;
  const std::size_t encoded = kernels::encoded_bytes(format, size.count);
  Segments segments{};
  segments.align = comm::chunk_alignment(format);
  chunk = std::max<std::uint64_t>(chunk, 1);
  const std::size_t bytes =
      segment_bytes(size.segment_class, kernels::encoded_bytes(format, chunk));
  segments.most_in_flight = std::max(kSmallInFlight, kPipeline * bytes);
  // The pipeline depth with a GPU: the segments that may be in flight, and those in other stages.
  // All ranks compute the length of a segment from this depth, because ranks with and without a GPU
  // may take part in one call.
  const std::size_t deepest = segments.most_in_flight / bytes / steps + kStages + kLateStages;
  const std::size_t bound = std::max<std::size_t>(kMemoryFloor, encoded);
  const auto value_bits = std::uint64_t(kernels::value_bits(format));
  const std::uint64_t unit = comm::segment_alignment(format);
  const bool one = comm::one_bucket(format);  // a single bucket cannot be divided
  const auto blocks_in = [&](std::size_t most) {
    return std::max<std::uint64_t>(1, std::min(bytes, most) * 8 / value_bits / unit);
  };
  std::uint64_t blocks = blocks_in(bound / (buffers * deepest));
  // A chunk with fewer segments than `deepest` needs only that many buffers, so its segments may be
  // longer. The loop takes the fewest segments whose buffers fit into `bound`.
  const std::uint64_t all = (chunk + unit - 1) / unit;
  for (std::uint64_t few = (all - 1) / blocks_in(bytes) + 1; few < deepest; ++few) {
    const std::uint64_t each = (all - 1) / few + 1;
    const std::size_t message = message_bytes(format, std::min(each * unit, chunk));
    if (round_up(message, 64) * buffers * few > bound) continue;
    blocks = std::max(blocks, each);
    break;
  }
  segments.elements = one ? chunk : std::min(blocks * unit, chunk);
  segments.per_longest_chunk = std::int64_t((chunk + segments.elements - 1) / segments.elements);
  segments.message = round_up(message_bytes(format, segments.elements), 64);
  const bool late = size.staged || size.segment_class != comm::SegmentClass::small;
  const std::int64_t depth = one ? 1 : std::int64_t(deepest) - (late ? 0 : kLateStages);
  segments.depth = int(std::min(depth, segments.per_longest_chunk));
  segments.total = segments.message * buffers * std::size_t(segments.depth);
  return segments;
}

}  // namespace

std::size_t message_bytes(const kernels::Format& format, std::uint64_t elements) {
  return comm::kHeaderBytes + round_up(kernels::encoded_bytes(format, elements), 4);
}

// The buffers of a segment are scatter_out, scatter_in and gather_in for each peer, and one
// gather_out (SegmentedLayout).
Segments segments_for(const ExchangeSize& size) {
  const std::size_t peers = std::size_t(size.group_size - 1);
  const std::uint64_t chunk =
      comm::chunk_of(size.count, size.group_size, 0, comm::chunk_alignment(size.format)).count;
  return divide(size, chunk, 3 * peers + 1, 2 * std::max<std::size_t>(peers, 1));
}

Segments scatter_segments(const ExchangeSize& size, std::uint64_t longest) {
  const std::size_t peers = std::size_t(size.group_size - 1);
  return divide(size, longest, 2 * peers, std::max<std::size_t>(peers, 1));
}

Segments gather_segments(const ExchangeSize& size, std::uint64_t longest) {
  const std::size_t peers = std::size_t(size.group_size - 1);
  return divide(size, longest, peers + 1, std::max<std::size_t>(peers, 1));
}

// Counts the bytes in flight as if segments were uncompressed, because slimpi does not know the
// lengths of a hook's payloads.
Segments hook_segments(const ExchangeSize& size, std::uint64_t piece, std::size_t message) {
  const std::size_t peers = std::size_t(size.group_size - 1);
  Segments segments{};
  segments.align = comm::chunk_alignment(size.format);
  const std::uint64_t chunk = comm::chunk_of(size.count, size.group_size, 0, segments.align).count;
  const std::size_t bytes = message_bytes(size.format, std::min(piece, chunk));
  segments.elements = piece;
  segments.per_longest_chunk =
      std::int64_t((std::max<std::uint64_t>(chunk, 1) + piece - 1) / piece);
  segments.most_in_flight = std::max(kSmallInFlight, bytes);
  segments.message = message;
  const std::size_t depth =
      segments.most_in_flight / bytes / (2 * std::max<std::size_t>(peers, 1)) + kStages;
  segments.depth = int(std::min(std::int64_t(depth), segments.per_longest_chunk));
  segments.total = message * (3 * peers + 1) * std::size_t(segments.depth);
  return segments;
}

Segments neighbor_segments(const kernels::Format& format, std::uint64_t count, int peers,
                           bool staged) {
  const std::uint64_t whole = std::max<std::uint64_t>(count, 1);
  const std::size_t buffers = std::size_t(peers) + 1;
  Segments result{};
  result.align = comm::chunk_alignment(format);
  result.elements = whole;
  result.depth = staged ? 6 : 4;
  if (!comm::one_bucket(format)) {
    // The message buffers take no more than the encoded shard, or than kMemoryFloor if that is
    // more.
    const std::uint64_t most =
        std::max<std::size_t>(kMemoryFloor, kernels::encoded_bytes(format, count)) /
        (buffers * std::size_t(result.depth));
    const std::uint64_t of_block = kernels::encoded_bytes(format, result.align);
    const std::uint64_t blocks =
        std::max<std::uint64_t>(1, std::min(kNeighborBytes, most) / of_block);
    result.elements = std::min(blocks * result.align, whole);
  }
  result.per_longest_chunk = std::int64_t((count + result.elements - 1) / result.elements);
  result.depth = int(std::clamp<std::int64_t>(result.per_longest_chunk, 1, result.depth));
  result.message = round_up(message_bytes(format, result.elements), 64);
  result.total = result.message * buffers * std::size_t(result.depth);
  return result;
}

}  // namespace slimpi::inter
