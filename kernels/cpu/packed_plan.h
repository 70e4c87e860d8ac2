// SPDX-License-Identifier: BSD-3-Clause
// The first half of encoding a packed tile: makes the plan, which has the tile's header, the bucket
// bytes, and the width and step of each scale, from the extremes of the buckets. encode_packed() in
// packed.h then rounds the values by this plan. Included by loops.cpp alone.
#pragma once
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/vectors.h"

namespace slimpi::kernels {
namespace {

constexpr std::uint32_t kMostBuckets = kMostPackedTile / kPackedBucket;

// Returns the number of values of the bucket that begins at element i of a tile of n elements.
SLIMPI_HD std::size_t bucket_at(std::size_t i, std::size_t n) {
  return n - i < kPackedBucket ? n - i : kPackedBucket;
}

// Width and step of every scale of a tile. The first kFiner rows are for the level of detail of the
// header, the rows after them for detail + 1, which the first PackedHeader::finer buckets have.
// row() finds the row of a bucket from its number and its bucket byte.
struct PackedTable {
  static constexpr std::size_t kFiner = kScales + 1;
  std::uint8_t width[2 * kFiner];
  float step[2 * kFiner];

  static std::size_t row(const PackedHeader& header, std::size_t bucket, std::uint8_t byte) {
    return (bucket < header.finer ? kFiner : 0) + (byte & 0x7f);
  }
};
void fill_table(const PackedHeader& header, PackedTable& table) {
  for (std::uint32_t more = 0; more < 2; ++more)
    for (std::uint32_t scale = 0; scale <= kScales; ++scale) {
      const std::size_t row = more * PackedTable::kFiner + scale;
      const std::int32_t width = width_of((std::uint8_t)scale, header.detail + (std::int32_t)more);
      table.width[row] = (std::uint8_t)width;
      table.step[row] = step_of(header.base, scale, width);
    }
}

// The result of make_plan() for a tile, from which encode_packed() then rounds the values.
struct PackedPlan {
  PackedHeader header;
  FoundExtremes extremes[kMostBuckets];
  std::uint16_t numbers[kMostBuckets];   // the scale numbers
  std::uint8_t bytes[kMostBuckets + 4];  // the bucket bytes, zero-filled up to a multiple of 4
  PackedTable table;
  float inverse_step[2 * PackedTable::kFiner];  // indexed by the rows of `table`
};

// Returns the extremes of the bucket that begins at element i of a tile of n elements.
SLIMPI_HD FoundExtremes extremes_at(const float* from, std::size_t i, std::size_t n) {
  return i + kPackedBucket <= n ? bucket_extremes(from + i) : extremes_of(from + i, n - i);
}

// How many buckets there are of each scale. of_pair[k] counts scales 2k and 2k + 1 together,
// because both have the same width. Scale 0 takes no units and is not counted.
struct ScaleCounts {
  static constexpr std::uint32_t kPairs = (kScales + 1) / 2;
  std::int32_t of_pair[kPairs];
};
// Counts the buckets by scale. Uses two arrays in turn: neighboring buckets often have the same
// scale, and in a single array each increment of a counter would wait for the previous one.
void count_scales(const std::uint8_t* bytes, std::size_t buckets, ScaleCounts& counts) {
  std::int32_t count[2 * PackedTable::kFiner] = {};
  for (std::size_t bucket = 0; bucket < buckets; ++bucket)
    ++count[bucket % 2 * PackedTable::kFiner + (bytes[bucket] & 0x7f)];
  count[0] = count[PackedTable::kFiner] = 0;
  for (std::uint32_t pair = 0; pair < ScaleCounts::kPairs; ++pair) {
    const std::int32_t* const even = count + 2 * pair;
    const std::int32_t* const odd = even + PackedTable::kFiner;
    counts.of_pair[pair] = even[0] + even[1] + odd[0] + odd[1];
  }
}
// Returns the units that the levels of all buckets take at this level of detail.
std::uint32_t units_with(const ScaleCounts& counts, std::int32_t detail) {
  std::int32_t units = 0;
  for (std::uint32_t pair = 0; pair < ScaleCounts::kPairs; ++pair)
    units += counts.of_pair[pair] * width_of((std::uint8_t)(2 * pair + 1), detail);
  return (std::uint32_t)units;
}

// For each bucket with infinities or NaNs, replaces kNonfinite in plan.numbers by the scale number
// of the bucket's finite values, combined with its marks byte. Returns the number of units that the
// marks of the tile take.
[[gnu::noinline]] std::uint32_t find_marks(const float* in, std::size_t n, PackedPlan& plan) {
  std::uint32_t units = units_of_marks(packed_buckets(n));
  for (std::size_t i = 0; i < n; i += kPackedBucket) {
    std::uint16_t& number = plan.numbers[i / kPackedBucket];
    if (number != kNonfinite) continue;
    std::uint32_t counts = 0;
    BucketExtremes finite;
    for (std::size_t j = i; j < i + bucket_at(i, n); ++j) {
      counts += 1u << 8 * mark_of(in[j]);
      if (is_finite(in[j])) include(finite, bits_of(in[j]));
    }
    number = marked_number(counts, finite);
    units += marks_of(number) & 3;
  }
  return units;
}

// Makes the whole plan from plan.extremes. `in` is read only to tell infinities from NaNs.
void make_plan(const Format& format, const float* in, std::size_t n, PackedPlan& plan) {
  const std::size_t buckets = packed_buckets(n);
  std::uint32_t room = packed_units(format, n), marks = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const auto [high, low] = plan.extremes[bucket];
    plan.numbers[bucket] = scale_number({high, low});
  }
  const auto greatest = [&] {
    std::int32_t most = 0;  // signed, because g++ 12 does not vectorize an unsigned maximum
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      const auto number = (std::int32_t)finite_number(plan.numbers[bucket]);
      most = most > number ? most : number;
    }
    return (std::uint32_t)most;
  };
  std::uint32_t most = greatest();
  if (most > kMostScale) [[unlikely]] {
    marks = find_marks(in, n, plan);
    if (marks > room) marks = 0;
    room -= marks;
    most = greatest();
  }
  const std::uint32_t base = base_for(most);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket)
    plan.bytes[bucket] = scale_byte(plan.numbers[bucket], base, marks != 0);
  for (std::size_t bucket = buckets; bucket % 4 != 0; ++bucket) plan.bytes[bucket] = 0;
  ScaleCounts counts;
  count_scales(plan.bytes, buckets, counts);
  const std::int32_t detail =
      most_detail([&](std::int32_t tried) { return units_with(counts, tried) <= room; });
  plan.header = {(std::uint16_t)base, (std::int16_t)detail, 0, (std::uint16_t)marks};
  fill_table(plan.header, plan.table);
  // Divide here once per row, because a bucket would have to wait for its own division. The result
  // equals inverse_step_of(), whose operands differ only in their exponents.
  for (std::size_t row = 0; row < 2 * PackedTable::kFiner; ++row)
    plan.inverse_step[row] = 1 / plan.table.step[row];
  std::uint32_t units = units_with(counts, detail);
  std::size_t finer = 0;
  for (; finer < buckets; ++finer) {
    const std::uint8_t* const width = plan.table.width + (plan.bytes[finer] & 0x7f);
    units += (std::uint32_t)(width[PackedTable::kFiner] - width[0]);
    if (units > room) break;
  }
  plan.header.finer = (std::uint16_t)finer;
}

}  // namespace
}  // namespace slimpi::kernels
