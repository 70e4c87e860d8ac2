// SPDX-License-Identifier: BSD-3-Clause
// Reads tiles of packed segments; kernels/math/packed.h explains scales, units, marks and bucket
// bytes. A block of threads works on a slice, which is 32 buckets of a tile. First a warp reads the
// slice's 32 bucket bytes, one per lane. Then each warp works on kWarpBuckets consecutive buckets,
// and each lane on values `lane` and `lane` + 32 of each of these buckets.
#pragma once
#include "kernels/cuda/packed_levels.h"
#include "kernels/cuda/team.h"
#include "kernels/math/packed.h"

namespace slimpi::kernels::cuda {

constexpr std::uint32_t kMostBuckets = kMostPackedTile / kPackedBucket;
constexpr std::uint32_t kSliceBuckets = kPackedSlice / kPackedBucket;
constexpr int kWarpBuckets = (int)kSliceBuckets / kWarpsOfBlock;
static_assert(kSliceBuckets == kWarpThreads && kLaneValues == 2);
constexpr int kPackedSources = kMaxAddends + 1;

// A slice of a tile, which is what one block of threads works on.
struct PackedSlice {
  std::uint64_t first, bytes;    // where the tile begins, in elements and in encoded bytes
  std::uint32_t number, bucket;  // the slice's number in the tile, and that of its first bucket
  PackedTile tile;
};
// packed_tile() returns the first slice of a tile, packed_slice() the slice of this block.
SLIMPI_DEVICE PackedSlice packed_tile(const PackedShape& shape, std::uint32_t number) {
  PackedSlice slice = {};
  slice.first = (std::uint64_t)number * shape.whole.count;
  slice.bytes = (std::uint64_t)number * shape.whole.bytes;
  slice.tile = number < shape.last_number ? shape.whole : shape.last;
  return slice;
}
SLIMPI_DEVICE PackedSlice packed_slice(const PackedShape& shape) {
  const std::uint32_t tile = blockIdx.x / shape.slices;
  PackedSlice slice = packed_tile(shape, tile);
  slice.number = blockIdx.x - tile * shape.slices;
  slice.bucket = slice.number * kSliceBuckets;
  return slice;
}
// Returns the address of the first unit (8 bytes of levels) of the tile that is encoded at `in`.
SLIMPI_DEVICE const std::byte* units_of(const PackedSlice& slice, const std::byte* in) {
  return in + slice.tile.header_bytes;
}

// Returns the number, within the tile, of bucket b of this warp.
SLIMPI_DEVICE std::uint32_t bucket_of_warp(const PackedSlice& slice, int b) {
  return slice.bucket + (std::uint32_t)(WarpTeam::index() * kWarpBuckets + b);
}

// lane_element() returns the index within the tile of this lane's value 0 in bucket 0 of its warp;
// value j in bucket b is kPackedBucket * b + kWarpThreads * j further on. has_packed() returns
// whether the tile has that value.
SLIMPI_DEVICE std::uint32_t lane_element(const PackedSlice& slice) {
  return bucket_of_warp(slice, 0) * kPackedBucket + (std::uint32_t)WarpTeam::thread();
}
SLIMPI_DEVICE bool has_packed(const PackedSlice& slice, int b, int j) {
  return (int)slice.tile.count - (int)lane_element(slice) >
         (int)kPackedBucket * b + kWarpThreads * j;
}

// The values of a warp's buckets that one lane holds.
using PackedValues = float[kWarpBuckets][kLaneValues];

// Calls visit(b, j) for each value j that this lane has in each bucket b of its warp.
template <typename Visit>
SLIMPI_DEVICE void for_packed(const Visit& visit) {
  SLIMPI_UNROLL
  for (int b = 0; b < kWarpBuckets; ++b) SLIMPI_UNROLL
  for (int j = 0; j < kLaneValues; ++j) visit(b, j);
}

// Load and store this lane's values of a tile of floats that begins at `from` or `to`. Values
// beyond the end of the tile are loaded as 0 and not stored.
SLIMPI_DEVICE void load_packed(const PackedSlice& slice, const float* from, PackedValues& values) {
  const float* const mine = from + lane_element(slice);
  for_packed([&](int b, int j) {
    values[b][j] = has_packed(slice, b, j) ? mine[kPackedBucket * b + kWarpThreads * j] : 0.0f;
  });
}
SLIMPI_DEVICE void store_packed(const PackedSlice& slice, const PackedValues& values, float* to) {
  float* const mine = to + lane_element(slice);
  for_packed([&](int b, int j) {
    if (has_packed(slice, b, j)) mine[kPackedBucket * b + kWarpThreads * j] = values[b][j];
  });
}

// A parsed bucket of an encoded slice, in shared memory.
struct alignas(16) PackedBucket {
  float step, origin;   // as in PackedScale; step = 0 if the width is 0
  std::uint16_t begin;  // the first unit of its levels, counted from that of the slice
  // Bits 0 to 3 hold the marks byte, bits 4 to 15 the bucket's first unit of marks, counted from
  // the first unit of the tile. The word is 0 if the bucket has no marks, or before find_marks().
  std::uint16_t marks;
  std::uint16_t width, byte;  // the bits of a level; the bucket byte
};
constexpr int kMostParts = (int)kMostBuckets / 4 / kWarpThreads;
struct PackedSource {
  PackedBucket bucket[kSliceBuckets];
  // How many units (of 8 bytes) the levels take in each part of the tile (see parts_of()): in the
  // upper 16 bits those of all buckets of the part, in the lower 16 bits those of its buckets
  // before the slice.
  std::uint32_t units[kMostParts];
  PackedHeader header;
};

SLIMPI_DEVICE std::int32_t width_at(const PackedHeader& header, std::uint8_t byte,
                                    std::uint32_t bucket) {
  return width_of(byte, header.detail + (bucket < header.finer ? 1 : 0));
}

SLIMPI_DEVICE PackedHeader read_packed_header(const std::byte* in) {
  const auto* const words = (const std::uint32_t*)in;
  const std::uint32_t first = words[0], second = words[1];
  return {(std::uint16_t)first, (std::int16_t)(first >> 16), (std::uint16_t)second,
          (std::uint16_t)(second >> 16)};
}

// Returns the sum of `mine` over the lanes before this one.
SLIMPI_DEVICE std::uint32_t sum_before(std::uint32_t mine) {
  std::uint32_t sum = mine;
  SLIMPI_UNROLL
  for (int distance = 1; distance < kWarpThreads; distance *= 2) {
    const std::uint32_t other = __shfl_up_sync(kAllLanes, sum, (unsigned)distance);
    if (WarpTeam::thread() >= distance) sum += other;
  }
  return sum - mine;
}

// Finds the marks (infinities and NaNs) of this warp's buckets in the tile encoded at `in`, and
// sets their PackedBucket::marks. Does nothing if PackedHeader::marks is invalid. A bucket whose
// units of marks would exceed the tile gets the mark of NaN for all its values.
SLIMPI_DEVICE void find_marks(const PackedSlice& slice, const std::byte* in, PackedSource& source) {
  const std::uint32_t described = units_of_marks(slice.tile.buckets), marks = source.header.marks;
  if (marks > slice.tile.units || marks < described) return;
  const std::uint32_t first = slice.tile.units - marks;
  const auto* const bytes = (const std::uint8_t*)units_of(slice, in) + first * kUnitBytes;
  const auto lane = (std::uint32_t)WarpTeam::thread();
  std::uint32_t before = 0;
  SLIMPI_ROLLED
  for (std::uint32_t bucket = lane; bucket < slice.bucket; bucket += kWarpThreads)
    before += bytes[bucket] & 3;
  const std::uint32_t mine = slice.bucket + lane;
  const std::uint32_t byte = mine < slice.tile.buckets ? bytes[mine] & 15 : 0, width = byte & 3;
  const std::uint32_t units = described + __reduce_add_sync(kAllLanes, before) + sum_before(width);
  const bool fit = width == 0 || units + width <= marks;
  if (byte != 0 && (int)lane / kWarpBuckets == WarpTeam::index())
    source.bucket[lane].marks = (std::uint16_t)(fit ? (first + units) << 4 | byte : kNanMark << 2);
  __syncwarp();
}

// Returns the marks of a bucket that find_marks() has found. `units` is the first unit of the tile.
SLIMPI_DEVICE PackedMarks marks_in(const PackedBucket& bucket, const std::byte* units) {
  return {bucket.marks & 15u, (std::uint8_t*)units + (bucket.marks >> 4) * kUnitBytes};
}

// Returns the number of parts into which the reading of a tile's header is divided; one warp reads
// each part. In every part but the last, the warp reads 128 bucket bytes of the tile (4 per lane)
// and adds up how many units these buckets take. In the last part, it reads the bucket bytes of its
// own slice and makes the PackedBuckets from them.
SLIMPI_DEVICE int parts_of(const PackedSlice& slice) {
  return (int)(slice.tile.buckets + 4 * kWarpThreads - 1) / (4 * kWarpThreads) + 1;
}

// Reads one part (see parts_of()) of the header of the tile encoded at `in`. All lanes of a warp
// call this together.
SLIMPI_DEVICE void open_packed(const PackedSlice& slice, const std::byte* in, int part,
                               PackedSource& source) {
  const auto lane = (std::uint32_t)WarpTeam::thread();
  const PackedHeader header = read_packed_header(in);
  const std::byte* const described = in + sizeof header;
  if (part < parts_of(slice) - 1) {
    const std::uint32_t at = lane + (std::uint32_t)(part * kWarpThreads);
    const std::uint32_t word =
        4 * at < slice.tile.buckets ? ((const std::uint32_t*)described)[at] : 0;
    std::uint32_t units = 0;
    SLIMPI_UNROLL
    for (std::uint32_t k = 0; k < 4; ++k) {
      const std::uint32_t bucket = 4 * at + k;
      const auto width = (std::uint32_t)width_at(header, (std::uint8_t)(word >> 8 * k), bucket);
      if (bucket < slice.tile.buckets) units += width << 16;
      if (bucket < slice.bucket) units += width;
    }
    units = __reduce_add_sync(kAllLanes, units);
    if (lane == 0) source.units[part] = units;
    return;
  }
  const std::uint32_t mine = slice.bucket + lane;
  const std::uint8_t byte =
      mine < slice.tile.buckets ? ((const std::uint8_t*)described)[mine] : (std::uint8_t)0;
  const std::int32_t width = width_at(header, byte, mine);
  PackedBucket& bucket = source.bucket[lane];
  // A level of width 0 is read as 0, and this step and origin give it the value 0.
  const float step = width == 0 ? 0 : step_of(header.base, byte & 0x7fu, width);
  bucket.step = step;
  bucket.origin = width == 0 ? kRounding : packed_scale(step, 0, byte, width).origin;
  bucket.begin = (std::uint16_t)sum_before((std::uint32_t)width);
  bucket.marks = 0;
  bucket.width = (std::uint16_t)width;
  bucket.byte = byte;
  if (lane == 0) source.header = header;
}

// Returns the sum of PackedSource::units over all parts, which must have been read.
SLIMPI_DEVICE std::uint32_t opened_units(const PackedSlice& slice, const PackedSource& source) {
  std::uint32_t units = 0;
  const int parts = parts_of(slice) - 1;
  SLIMPI_UNROLL
  for (int part = 0; part < kMostParts; ++part)
    if (part < parts) units += source.units[part];
  return units;
}
// Returns whether the tile is one that no encoder writes. All its values then decode to NaN, and
// its units are not read. `units` is the result of opened_units().
SLIMPI_DEVICE bool is_damaged(const PackedSlice& slice, const PackedSource& source,
                              std::uint32_t units) {
  return !is_header(source.header, slice.tile.buckets) ||
         (units >> 16) + source.header.marks > slice.tile.units;
}

// The 32-bit words, at most kWarpWords, that hold the levels of a warp's buckets.
constexpr std::uint32_t kUnitWords = kUnitBytes / 4;
constexpr std::uint32_t kWarpWords = kWarpBuckets * kMostWidth * kUnitWords;
struct PackedWords {
  std::uint32_t first, count;  // `first` counts from the first unit of the slice
};
SLIMPI_DEVICE PackedWords words_of_warp(const PackedSource& source) {
  const PackedBucket* const mine = source.bucket + WarpTeam::index() * kWarpBuckets;
  const PackedBucket& last = mine[kWarpBuckets - 1];
  return {mine[0].begin * kUnitWords, (last.begin + last.width - mine[0].begin) * kUnitWords};
}
// Returns where a bucket begins in the words of its warp, in bytes.
SLIMPI_DEVICE std::uint32_t byte_in(const PackedWords& words, const PackedBucket& bucket) {
  return (bucket.begin * kUnitWords - words.first) * 4;
}

SLIMPI_DEVICE float packed_value(const PackedBucket& bucket, std::uint32_t level) {
  const float value =
      (float_of(level | (std::uint32_t)kRoundingBits) - bucket.origin) * bucket.step;
  return bucket.byte == kNonfiniteBucket ? nan_value() : value;
}
// Returns `value` plus the infinity or NaN that marks value j of this lane, or just `value` if it
// has no mark. `units` is the first unit of the tile.
SLIMPI_DEVICE float with_mark(const PackedBucket& bucket, const std::byte* units, float value,
                              int j) {
  if (bucket.marks == 0) return value;
  const auto i = (std::uint32_t)(WarpTeam::thread() + kWarpThreads * j);
  return add(value, marked_value(marks_in(bucket, units), i));
}

// Decodes this lane's values of the tile encoded at `in`, without marks. `words` is shared memory
// of the warp, of kWarpWords words.
SLIMPI_DEVICE void decode_packed(const PackedSlice& slice, const PackedSource& source,
                                 const std::byte* in, std::uint32_t* words, PackedValues& values) {
  const std::uint32_t units = opened_units(slice, source);
  if (is_damaged(slice, source, units)) {
    for_packed([&](int b, int j) { values[b][j] = nan_value(); });
    return;
  }
  const PackedWords range = words_of_warp(source);
  const std::uint32_t* const from =
      (const std::uint32_t*)units_of(slice, in) + ((units & 0xffff) * kUnitWords + range.first);
  constexpr int kEach = (int)kWarpWords / kWarpThreads;
  const int lane = WarpTeam::thread(), left = (int)range.count - lane;
  std::uint32_t loaded[kEach];
  SLIMPI_UNROLL
  for (int w = 0; w < kEach; ++w)
    loaded[w] = left > w * kWarpThreads ? (from + lane)[w * kWarpThreads] : 0;
  __syncwarp();  // every lane has read the old contents of `words`
  SLIMPI_UNROLL
  for (int w = 0; w < kEach; ++w) words[lane + w * kWarpThreads] = loaded[w];
  __syncwarp();
  SLIMPI_UNROLL
  for (int b = 0; b < kWarpBuckets; ++b) {
    const PackedBucket bucket = source.bucket[WarpTeam::index() * kWarpBuckets + b];
    const PackedPair levels =
        levels_of((const std::uint8_t*)words + byte_in(range, bucket), bucket.width);
    SLIMPI_UNROLL
    for (int j = 0; j < kLaneValues; ++j) values[b][j] = packed_value(bucket, levels.level[j]);
  }
}

// Adds the source's infinities and NaNs to `sums`, which already include its finite values.
SLIMPI_DEVICE void add_marks(const PackedSlice& slice, PackedSource& source, const std::byte* in,
                             PackedValues& sums) {
  if (source.header.marks == 0) return;
  find_marks(slice, in, source);
  for_packed([&](int b, int j) {
    const PackedBucket& bucket = source.bucket[WarpTeam::index() * kWarpBuckets + b];
    sums[b][j] = with_mark(bucket, units_of(slice, in), sums[b][j], j);
  });
}

// Returns the extremes of a bucket, over the values of all lanes.
SLIMPI_DEVICE BucketExtremes extremes_of(const float (&values)[kLaneValues]) {
  BucketExtremes found = {INT32_MIN, 0};
  SLIMPI_UNROLL
  for (int j = 0; j < kLaneValues; ++j) include(found, bits_of(values[j]));
  return {__reduce_max_sync(kAllLanes, found.high), __reduce_max_sync(kAllLanes, found.low)};
}

// Returns where the scale numbers (scale_number()) of a tile are kept while the tile is encoded at
// `out`: in the memory of its levels, which later overwrite them.
SLIMPI_DEVICE std::uint16_t* numbers_in(const PackedSlice& slice, std::byte* out) {
  return (std::uint16_t*)units_of(slice, out + slice.bytes);
}

// Returns the scale number of a bucket whose values are not all finite. `low` and `high` are this
// lane's two values; `has_low` and `has_high` say whether the tile has them.
SLIMPI_DEVICE_RARE std::uint16_t marked_number(float low, float high, bool has_low, bool has_high) {
  const std::uint32_t counts =
      (has_low ? 1u << 8 * mark_of(low) : 0) + (has_high ? 1u << 8 * mark_of(high) : 0);
  const BucketExtremes finite = extremes_of({is_finite(low) ? low : 0, is_finite(high) ? high : 0});
  return marked_number(__reduce_add_sync(kAllLanes, counts), finite);
}
// Returns the scale number of bucket b of the warp, or 0 if the tile has no such bucket.
SLIMPI_DEVICE std::uint16_t number_of(const PackedSlice& slice, const PackedValues& values, int b) {
  const std::uint16_t number = scale_number(extremes_of(values[b]));
  if (number != kNonfinite) return number;
  return marked_number(values[b][0], values[b][1], has_packed(slice, b, 0),
                       has_packed(slice, b, 1));
}

// Computes and writes the scale numbers of the warp's buckets.
SLIMPI_DEVICE void write_numbers(const PackedSlice& slice, const PackedValues& values,
                                 std::uint16_t* numbers) {
  const int lane = WarpTeam::thread();
  BucketExtremes extremes;  // lane b has bucket b: all numbers are computed at once
  SLIMPI_UNROLL
  for (int b = 0; b < kWarpBuckets; ++b) {
    const BucketExtremes found = extremes_of(values[b]);
    if (lane == b) extremes = found;
  }
  std::uint16_t mine = scale_number(extremes);
  if (__any_sync(kAllLanes, mine == kNonfinite)) {
    SLIMPI_UNROLL
    for (int b = 0; b < kWarpBuckets; ++b) {
      const std::uint16_t number = number_of(slice, values, b);
      if (lane == b) mine = number;
    }
  }
  const std::uint32_t bucket = bucket_of_warp(slice, lane);
  if (lane < kWarpBuckets && bucket < slice.tile.buckets) numbers[bucket] = mine;
}

}  // namespace slimpi::kernels::cuda
