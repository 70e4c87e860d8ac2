// SPDX-License-Identifier: BSD-3-Clause
// The packed codec on the host: encodes and decodes tiles (math/packed.h) bucket by bucket.
// Included by loops.cpp alone.
#pragma once
#include <cstring>
#include <utility>

#include "kernels/cpu/packed_plan.h"
#include "kernels/cpu/planes.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/vectors.h"

namespace slimpi::kernels {
namespace {

// The integer type that holds an unpacked level of `width` bits.
template <int width>
using LevelOf = std::conditional_t<width <= kBits<Narrow>, Narrow, Wide>;

// Returns a table with the entry make.template operator()<width>() for each width from 1 to
// kMostWidth, so that the width of a bucket selects code compiled for it.
template <typename Make, int... index>
constexpr auto by_width(const Make& make, std::integer_sequence<int, index...>) {
  struct Table {
    decltype(make.template operator()<1>()) of[kMostWidth];
  };
  return Table{{make.template operator()<index + 1>()...}};
}
template <typename Make>
constexpr auto by_width(const Make& make) {
  return by_width(make, std::make_integer_sequence<int, kMostWidth>());
}

// A tile that is being decoded: its parsed header and where its parts are.
struct PackedTile {
  bool damaged;  // no encoder writes this: all values decode to NaN
  PackedHeader header;
  const std::uint8_t* bytes;    // the bucket bytes
  const std::byte* units;       // the first unit of the tile
  const std::byte* end;         // the end of the tile
  std::uint32_t buckets, room;  // number of buckets; units that fit into the tile
  PackedTable table;
  std::uint16_t begin[kMostBuckets];  // the first unit of each bucket
};

// Parses the header and the bucket bytes of the encoded tile of n elements at `in`, and marks the
// tile as damaged unless all its units lie inside it.
void open_packed(const Format& format, const std::byte* in, std::size_t n, PackedTile& tile) {
  std::memcpy(&tile.header, in, sizeof tile.header);
  tile.bytes = (const std::uint8_t*)in + sizeof tile.header;
  tile.units = in + packed_header_bytes(n);
  tile.end = in + packed_tile_bytes(format, n);
  const std::size_t buckets = packed_buckets(n);
  tile.buckets = (std::uint32_t)buckets;
  tile.room = packed_units(format, n);
  tile.damaged = !is_header(tile.header, buckets);
  if (tile.damaged) return;
  fill_table(tile.header, tile.table);
  std::uint32_t units = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    tile.begin[bucket] = (std::uint16_t)units;
    units += tile.table.width[PackedTable::row(tile.header, bucket, tile.bytes[bucket])];
  }
  tile.damaged = units + tile.header.marks > tile.room;
}

// Decodes a bucket of this width to `to`. With `adds`, to = sum + the decoded values, and `to` may
// be `sum`; without `adds`, `sum` is not read.
template <int width, bool adds>
[[gnu::noinline]] void decode_bucket(const PackedScale& scale, const std::byte* in,
                                     const float* sum, float* to) {
  BucketLevels<LevelOf<width>> levels;
  const auto* const unpacked = unpack_bucket<width>(in, levels);
  // Each load is as long as the stores that wrote the levels, because a longer one would wait until
  // the stores have reached the cache.
  constexpr std::size_t kAtOnce = width < 8 ? kSixteen : kPackedBucket;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kPackedBucket; i += kAtOnce)
    if constexpr (adds)
      add_levels(scale, unpacked + i, kAtOnce, sum + i, to + i);
    else
      from_levels(scale, unpacked + i, kAtOnce, to + i);
}
template <bool adds>
constexpr auto kDecodeBucket = by_width([]<int width>() { return &decode_bucket<width, adds>; });

// Decodes any bucket of a tile to `to`; with `adds`, to = sum + values. Infinities and NaNs that
// have marks are left to add_marks().
template <bool adds>
SLIMPI_HD void decode_packed_bucket(const PackedTile& tile, std::size_t bucket, const float* sum,
                                    float* to) {
  const std::uint8_t byte = tile.bytes[bucket];
  if (tile.damaged || byte == kNonfiniteBucket) return fill_nan(to, kPackedBucket);
  const std::size_t row = PackedTable::row(tile.header, bucket, byte);
  const std::uint8_t width = tile.table.width[row];
  const std::byte* in = tile.units + std::size_t(tile.begin[bucket]) * kUnitBytes;
  if (kAnyWidth && width <= kBits<Narrow>) {
    std::byte last[kPackedBucket];
    if (tile.end - in < (std::ptrdiff_t)sizeof last) [[unlikely]] {
      std::memset(last, 0, sizeof last);
      std::memcpy(last, in, width * kUnitBytes);
      in = last;
    }
    const float finite = 0x1.fffffep127f, step = tile.table.step[row];
    decode_any<adds>(step < finite ? step : finite, byte >= kNegativeSide, width, in, sum, to);
  } else if (width != 0) {
    const PackedScale scale = packed_scale(tile.table.step[row], 0, byte, width);
    kDecodeBucket<adds>.of[width - 1](scale, in, sum, to);
  } else if (adds) {
    add_zero(sum, kPackedBucket, to);
  } else {
    std::memset(to, 0, kPackedBucket * sizeof(float));
  }
}

// Returns the marks of a bucket. `all` is the number of units that the marks of the whole tile take
// (PackedHeader::marks), and `end` is the end of the tile's units.
SLIMPI_HD PackedMarks marks_at(std::uint32_t all, std::uint8_t* end, std::uint32_t buckets,
                               std::uint32_t bucket) {
  std::uint8_t* const bytes = end - all * kUnitBytes;
  const std::uint32_t width = bytes[bucket] & 3;
  std::uint32_t units = units_of_marks(buckets);
  for (std::uint32_t other = 0; width != 0 && other < bucket; ++other) units += bytes[other] & 3;
  const bool fit = units + width <= all;
  return {fit ? bytes[bucket] : kNanMark << 2, bytes + units * kUnitBytes};
}

// Adds the marked infinities and NaNs of elements first .. first + n - 1 of the tile to `to`, where
// these elements have already been decoded as if they were 0.
[[gnu::noinline]] void add_marks(const PackedTile& tile, std::size_t first, std::size_t n,
                                 float* to) {
  auto* const end = (std::uint8_t*)tile.units + tile.room * kUnitBytes;
  PackedMarks marks = {};
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = (std::uint32_t)(first + i);
    if (i % kPackedBucket == 0)
      marks = marks_at(tile.header.marks, end, tile.buckets, at / kPackedBucket);
    if (marks.byte != 0) to[i] = add(to[i], marked_value(marks, at % kPackedBucket));
  }
}

// Decodes elements first .. first + n - 1 of the tile, `first` a multiple of kPackedBucket; with
// `adds`, to = sum + elements, and `to` may be `sum`.
template <bool adds>
SLIMPI_HD void decode_packed(const PackedTile& tile, std::size_t first, std::size_t n,
                             const float* sum, float* to) {
  std::size_t i = 0;
  for (; i + kPackedBucket <= n; i += kPackedBucket)
    decode_packed_bucket<adds>(tile, (first + i) / kPackedBucket, sum + i, to + i);
  if (i < n) {
    float last[kPackedBucket] = {};
    if (adds) std::memcpy(last, sum + i, (n - i) * sizeof(float));
    decode_packed_bucket<adds>(tile, (first + i) / kPackedBucket, last, last);
    std::memcpy(to + i, last, (n - i) * sizeof(float));
  }
  if (!tile.damaged && tile.header.marks != 0) [[unlikely]]
    add_marks(tile, first, n, to);
}
void read_packed(const PackedTile& tile, std::size_t first, std::size_t n, float* to) {
  decode_packed<false>(tile, first, n, to, to);
}
void add_packed(const PackedTile& tile, std::size_t first, std::size_t n, const float* sum,
                float* to) {
  decode_packed<true>(tile, first, n, sum, to);
}

// The input of a bucket's encoder, and its outputs besides the levels; x' is a decoded value.
// `residual` and `decoded` may be null.
struct BucketValues {
  const float* in;
  float* residual;  // in - x'; may be `in`
  float* decoded;   // x'; may be `in`
};

// Rounds the values of a bucket to levels of `width` bits and packs them at `out`; also writes the
// residual and the decoded values that `values` asks for.
template <int width>
[[gnu::noinline]] void encode_levels_of(float step, float inverse_step, std::uint8_t byte,
                                        const BucketValues& values, std::byte* out) {
  const PackedScale scale = packed_scale(step, inverse_step, byte, width);
  BucketLevels<LevelOf<width>> levels;
  const auto& [in, residual, decoded] = values;
  if constexpr (width <= kBits<Narrow>)
    to_bucket_levels(scale, in, levels.level);
  else
    to_nearest_levels(scale, in, kPackedBucket, levels.level);
  if (residual != nullptr && decoded != nullptr)
    subtract_levels(scale, levels.level, in, kPackedBucket, residual, decoded);
  else if (residual != nullptr)
    subtract_levels(scale, levels.level, in, kPackedBucket, residual);
  else if (decoded != nullptr)
    from_levels(scale, levels.level, kPackedBucket, decoded);
  pack_bucket<width>(levels, out);
}
constexpr auto kEncodeBucket = by_width([]<int width>() { return &encode_levels_of<width>; });

// Encodes a full bucket at `out`, and returns the end of its levels.
SLIMPI_HD std::byte* encode_packed_bucket(const PackedPlan& plan, std::size_t bucket,
                                          const BucketValues& values, std::byte* out) {
  const std::uint8_t byte = plan.bytes[bucket];
  const std::size_t row = PackedTable::row(plan.header, bucket, byte);
  const std::uint8_t width = plan.table.width[row];
  if (width != 0) {
    kEncodeBucket.of[width - 1](plan.table.step[row], plan.inverse_step[row], byte, values, out);
  } else if (byte == kNonfiniteBucket) {  // keeps its residual
    if (values.decoded != nullptr) fill_nan(values.decoded, kPackedBucket);
  } else if (values.decoded != nullptr) {  // x' = 0; `residual` holds the whole values already
    std::memset(values.decoded, 0, kPackedBucket * sizeof(float));
  }
  return out + width * kUnitBytes;
}

// Adds the clamped residuals to `in`, stores the sums in `residual`, and replaces the plan for `in`
// by the plan for the sums. encode_packed() turns these sums into the new residuals. Buckets with
// infinities or NaNs keep their residuals.
void add_residuals(const Format& format, const float* in, float* residual, std::size_t n,
                   PackedPlan& plan) {
  for (std::size_t i = 0; i < n; i += kPackedBucket) {
    const std::size_t bucket = i / kPackedBucket;
    if (marks_of(plan.numbers[bucket]) != 0) continue;
    const std::size_t row = PackedTable::row(plan.header, bucket, plan.bytes[bucket]);
    const float limit = residual_limit(plan.header, plan.table.step[row], plan.numbers[bucket]);
    add_residual(in + i, limit, bucket_at(i, n), residual + i);
    plan.extremes[bucket] = extremes_at(residual, i, n);
  }
  make_plan(format, in, n, plan);
}

// Encodes the bucket with infinities or NaNs that begins at element i of a tile of n elements, and
// returns the end of its levels. The residual is left as it is. `end` is the end of the tile's
// units.
[[gnu::noinline]] std::byte* encode_marked(const PackedPlan& plan, std::size_t n, std::size_t i,
                                           const float* in, float* decoded, std::byte* end,
                                           std::byte* out) {
  const std::size_t bucket = i / kPackedBucket, count = bucket_at(i, n);
  const std::uint32_t byte = marks_of(plan.numbers[bucket]);
  std::uint32_t mark[kPackedBucket];
  float values[kPackedBucket] = {}, back[kPackedBucket];
  for (std::size_t j = 0; j < count; ++j) {
    mark[j] = mark_of(in[i + j]);
    if (mark[j] == 0) values[j] = in[i + j];
  }
  if (plan.header.marks != 0) {
    (end - plan.header.marks * kUnitBytes)[bucket] = (std::byte)byte;
    const PackedMarks marks = marks_at(plan.header.marks, (std::uint8_t*)end,
                                       (std::uint32_t)packed_buckets(n), (std::uint32_t)bucket);
    for (std::uint32_t bit = 0; bit < (byte & 3); ++bit)
      for (std::size_t j = 0; j < count; ++j)
        marks.units[bit * kUnitBytes + j / 8] |=
            (std::uint8_t)(mark_bit(byte, mark[j], bit) << j % 8);
  }
  out = encode_packed_bucket(plan, bucket, {values, nullptr, back}, out);
  for (std::size_t j = 0; decoded != nullptr && j < count; ++j)
    decoded[i + j] = add(back[j], marked_value(mark[j]));
  return out;
}

// Encodes a tile of n elements: `in`, plus the clamped `residual` unless that is null. `decoded`
// may be null or `in`. Prefetches the n floats at `upcoming`, the next tile, unless that is null.
void encode_packed(const Format& format, const float* in, float* residual, std::size_t n,
                   float* decoded, const float* upcoming, PackedPlan& plan, std::byte* out) {
  for (std::size_t i = 0; i < n; i += kPackedBucket)
    plan.extremes[i / kPackedBucket] = extremes_at(in, i, n);
  make_plan(format, in, n, plan);
  if (residual != nullptr) add_residuals(format, in, residual, n, plan);
  const float* const from = residual == nullptr ? in : residual;
  const std::size_t header = packed_header_bytes(n);
  std::byte *const end = out + header + packed_units(format, n) * kUnitBytes,
                   *const marks = end - plan.header.marks * kUnitBytes;
  std::memset(marks, 0, (std::size_t)(out + packed_tile_bytes(format, n) - marks));
  std::memcpy(out, &plan.header, sizeof plan.header);
  std::memcpy(out + sizeof plan.header, plan.bytes, header - sizeof plan.header);
  std::byte* to = out + header;
  std::size_t i = 0;
  for (; i + kPackedBucket <= n; i += kPackedBucket) {
    if (upcoming != nullptr) prefetch(upcoming + i, kPackedBucket * sizeof(float));
    if (marks_of(plan.numbers[i / kPackedBucket]) != 0) [[unlikely]] {
      to = encode_marked(plan, n, i, in, decoded, end, to);
      continue;
    }
    to = encode_packed_bucket(plan, i / kPackedBucket,
                              {from + i, residual == nullptr ? nullptr : residual + i,
                               decoded == nullptr ? nullptr : decoded + i},
                              to);
  }
  if (i < n && marks_of(plan.numbers[i / kPackedBucket]) != 0) {
    to = encode_marked(plan, n, i, in, decoded, end, to);
  } else if (i < n) {
    float values[kPackedBucket] = {}, kept[kPackedBucket], back[kPackedBucket];
    const std::size_t bytes = (n - i) * sizeof(float);
    std::memcpy(values, from + i, bytes);
    std::memcpy(kept, values, sizeof kept);
    to = encode_packed_bucket(plan, i / kPackedBucket, {values, kept, back}, to);
    if (residual != nullptr) std::memcpy(residual + i, kept, bytes);
    if (decoded != nullptr) std::memcpy(decoded + i, back, bytes);
  }
  std::memset(to, 0, (std::size_t)(marks - to));
}

}  // namespace
}  // namespace slimpi::kernels
