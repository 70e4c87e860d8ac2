// SPDX-License-Identifier: BSD-3-Clause
// Packed segments (kernels/math/packed.h): a block of threads has a tile, a warp has one bucket of
// the tile after the other, a lane two of its values, 32 apart. Here is what reads a tile; within a
// warp only the sums of widths need other lanes' numbers.
#pragma once
#include "kernels/cuda/team.h"
#include "kernels/math/packed.h"

namespace slimpi::kernels::cuda {

constexpr std::uint32_t kMostBuckets = kMostPackedTile / kPackedBucket;
constexpr int kLaneValues = kPackedBucket / kWarpThreads;
constexpr int kPackedSources = kMaxAddends + 1;

// A tile of the segment: its first element, its length, and where it is encoded.
struct PackedRange {
  std::uint64_t first, bytes;
  std::uint32_t count, buckets;
};
SLIMPI_DEVICE PackedRange packed_range(const Format& format, std::uint64_t count) {
  const std::uint64_t first = (std::uint64_t)blockIdx.x * format.bucket, left = count - first;
  const auto n = (std::uint32_t)(left < format.bucket ? left : format.bucket);
  return {first, blockIdx.x * packed_tile_bytes(format, format.bucket), n,
          (std::uint32_t)packed_buckets(n)};
}

// An encoded tile that is being read.
struct PackedSource {
  bool damaged;  // no encoder has written it: decodes to NaN
  PackedHeader header;
  const std::uint8_t *bytes, *units;
  std::uint16_t begin[kMostBuckets];  // of each bucket, in units
};

SLIMPI_DEVICE std::int32_t width_at(const PackedHeader& header, const std::uint8_t* bytes,
                                    std::uint32_t bucket) {
  return width_of(bytes[bucket], header.detail + (bucket < header.finer ? 1 : 0));
}

// The buckets of which a lane adds up widths: consecutive ones.
struct LaneBuckets {
  std::uint32_t first, end;
};
SLIMPI_DEVICE LaneBuckets lane_buckets(std::uint32_t buckets) {
  const std::uint32_t each = (buckets + kWarpThreads - 1) / kWarpThreads;
  const std::uint32_t first = (std::uint32_t)WarpTeam::thread() * each, end = first + each;
  return {first < buckets ? first : buckets, end < buckets ? end : buckets};
}

// The sum of what the lanes before this one have; *total: of all lanes. `lanes` is shared memory of
// the warp, for a word of each.
SLIMPI_DEVICE std::uint32_t sum_before(std::uint32_t mine, std::uint32_t* lanes,
                                       std::uint32_t* total) {
  const int lane = WarpTeam::thread();
  lanes[lane] = mine;
  __syncwarp();
  std::uint32_t before = 0, all = 0;
  SLIMPI_ROLLED
  for (int other = 0; other < kWarpThreads; ++other) {
    const std::uint32_t value = lanes[other];
    before += other < lane ? value : 0;
    all += value;
  }
  __syncwarp();
  *total = all;
  return before;
}

// Where each bucket begins, by a warp. The units of all buckets are returned.
SLIMPI_DEVICE std::uint32_t find_begins(const PackedHeader& header, const std::uint8_t* bytes,
                                        std::uint32_t buckets, std::uint32_t* lanes,
                                        std::uint16_t* begin) {
  const LaneBuckets mine = lane_buckets(buckets);
  std::uint32_t units = 0, total = 0;
  for (std::uint32_t bucket = mine.first; bucket < mine.end; ++bucket)
    units += (std::uint32_t)width_at(header, bytes, bucket);
  std::uint32_t at = sum_before(units, lanes, &total);
  for (std::uint32_t bucket = mine.first; bucket < mine.end; ++bucket) {
    begin[bucket] = (std::uint16_t)at;
    at += (std::uint32_t)width_at(header, bytes, bucket);
  }
  return total;
}

// Reads what describes the tile at `in`, by a warp. All of it is tested, so that nothing behind the
// tile is read.
SLIMPI_DEVICE void open_packed(const Format& format, const PackedRange& tile, const std::byte* in,
                               std::uint32_t* lanes, PackedSource& source) {
  const auto* const words = (const std::uint32_t*)in;
  const std::uint32_t first = words[0], second = words[1];
  const PackedHeader header = {(std::uint16_t)first, (std::int16_t)(first >> 16),
                               (std::uint16_t)second, (std::uint16_t)(second >> 16)};
  const auto* const bytes = (const std::uint8_t*)in + sizeof header;
  bool damaged = !is_header(header, tile.buckets);
  if (!damaged)
    damaged = find_begins(header, bytes, tile.buckets, lanes, source.begin) >
              packed_units(format, tile.count);
  if (WarpTeam::thread() != 0) return;
  source.damaged = damaged;
  source.header = header;
  source.bytes = bytes;
  source.units = (const std::uint8_t*)in + packed_header_bytes(tile.count);
}

// Level i of the bucket at `in`.
SLIMPI_DEVICE std::uint16_t level_of(const std::uint8_t* in, std::int32_t width, std::uint32_t i) {
  std::uint32_t level = 0, shift = 0;
  if (width >= 8) {
    level = in[i];
    in += kPackedBucket;
    shift = 8;
  }
  if ((width & 16) != 0) level |= (std::uint32_t)in[i] << shift;
  if ((width & 4) != 0) {
    level |= (std::uint32_t)(in[i % 32] >> i / 32 * 4 & 15) << shift;
    in += kPackedBucket / 2;
    shift += 4;
  }
  if ((width & 2) != 0) {
    level |= (std::uint32_t)(in[i % 16] >> i / 16 * 2 & 3) << shift;
    in += kPackedBucket / 4;
    shift += 2;
  }
  if ((width & 1) != 0) level |= (std::uint32_t)(in[i % 8] >> i / 8 & 1) << shift;
  return (std::uint16_t)level;
}

// Value i of a bucket of the source.
SLIMPI_DEVICE float packed_value(const PackedSource& source, std::uint32_t bucket,
                                 std::uint32_t i) {
  if (source.damaged) return nan_value();
  const std::uint8_t byte = source.bytes[bucket];
  if (byte == kNonfiniteBucket) return nan_value();
  const std::int32_t width = width_at(source.header, source.bytes, bucket);
  if (width == 0) return 0;
  const float step = step_of(source.header.base, byte & 0x7fu, width);
  const std::uint8_t* const in = source.units + source.begin[bucket] * kUnitBytes;
  return level_value(packed_scale(step, 0, byte, width), level_of(in, width, i));
}

}  // namespace slimpi::kernels::cuda
