// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the packed codec, in one copy for CPU and GPU loops. Nothing here may be
// contracted to a fused multiply-add or reordered, and the rounding mode is to nearest even.
//
// A tile is divided into buckets of kPackedBucket values. Each has a scale of its own, and a width:
// the bits that each of its levels takes. The width is no part of the message. It follows from the
// scale and from a number of the whole tile, its level of detail, by width_of(). The encoder takes
// the largest level with which the buckets fit into the bytes of the tile, so that these depend on
// the number of values and on Format::bits only. The first `finer` buckets have one level of detail
// more: as many as there is room for. A tile is
//   PackedHeader
//   a byte for each bucket: bits 0 to 6 the scale, bit 7 the side; zeros up to a multiple of 4
//   bytes the buckets one after the other, 8 bytes for each bit of the width zeros
// A bucket has first, where the width is 8 or more, the low 8 bits of each of its 64 levels. Of the
// rest of the bits, the lower ones come first:
//   8 bits, if width & 16   64 bytes
//   4 bits, if width & 4    32 bytes; byte i has those of levels i and i + 32, from its low bits on
//   2 bits, if width & 2    16 bytes; byte i has those of levels i, i + 16, i + 32, i + 48
//   1 bit, if width & 1     8 bytes; byte i has those of levels i, i + 8, ... i + 56
// So neither vector registers nor warps move bits between distant lanes. The last bucket of a tile
// is filled up with zeros.
//
// Scales are floats with three bits of mantissa, 8 in an octave, at least the greatest magnitude of
// the bucket. Their numbers in a tile end at that of its greatest scale and begin 127 lower, which
// is 16 octaves; buckets below that, and below 2^-110, are zeros. With half = 2^(width - 1) the
// levels of a bucket are the multiples q of step = scale / half with
//   -half < q <= half    if its extreme is positive
//   -half <= q < half    if it is negative: the side
// A multiple is exact. With u = 2^-24,
//   |x' - x| <= step/2 + 3 u |x|
// and at most a step + 3 u |x| where the levels end on the side that is not the extreme's. Without
// any bits step = 2 * scale, and x' is 0. A scale is at most 9/8 of the greatest magnitude. 0 is
// exact, as +0. The greatest scale is the greatest float, of which a multiple may be rounded.
//
// An infinity or a NaN is 0 among the levels and has a mark: 1 for infinity, 2 for -infinity, 3 for
// a NaN. The marks are the last PackedHeader::marks units of a tile. They begin with a byte for
// each bucket, zeros up to a whole unit. Its bits 0 and 1 are the width of the bucket's marks,
// which follow in the order of the buckets, bits 2 and 3 a mark:
//   0   all values of the bucket have this mark, or it is 0 and none has one
//   1   those have it whose bit is set: value i that of bit i of a unit
//   2   a unit has the low bits of all marks, the next one the high bits
// Where marks leave no room, as dense ones do below 3 bits, the buckets with such values decode to
// NaN.
#pragma once
#include "kernels/format.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels {

constexpr int kScaleShift = 20;                  // bits of a float below those of a scale
constexpr std::uint32_t kScales = 127;           // of a tile, besides zero
constexpr std::uint32_t kLeastBase = 136;        // the number of 2^-110
constexpr std::uint32_t kMostScale = 0x7f8;      // the number of the greatest float
constexpr std::uint32_t kHugeScale = 0x718;      // the number of 2^100
constexpr std::uint8_t kNegativeSide = 0x80;     // of a bucket, beside its scale
constexpr std::uint8_t kNonfiniteBucket = 0x80;  // decodes to NaN

struct PackedHeader {
  std::uint16_t base;   // the number of a bucket's scale is base + the scale of its byte
  std::int16_t detail;  // level of detail
  std::uint16_t finer;  // buckets with one more
  std::uint16_t marks;  // units
};

// Extremes of a bucket's values, for the encoder: their greatest bits as signed and as unsigned
// integers, which are the greatest and the most negative number.
struct BucketExtremes {
  std::int32_t high = INT32_MIN;
  std::uint32_t low = 0;
};
SLIMPI_HD void include(BucketExtremes& extremes, std::uint32_t bits) {
  const auto number = (std::int32_t)bits;
  extremes.high = extremes.high > number ? extremes.high : number;
  extremes.low = extremes.low > bits ? extremes.low : bits;
}
// The magnitudes of the greatest positive and negative number, as bits; 0 where there is none.
SLIMPI_HD std::uint32_t positive_of(const BucketExtremes& extremes) {
  return extremes.high > 0 ? (std::uint32_t)extremes.high : 0;
}
SLIMPI_HD std::uint32_t negative_of(const BucketExtremes& extremes) {
  return extremes.low > 0x80000000 ? extremes.low - 0x80000000 : 0;
}

// The number of the least scale that holds these values, 0 for zeros; kNonfinite where an element
// is not finite. In bit kNegative: the extreme is negative. From kMarksShift on: what becomes the
// byte of the marks.
constexpr std::uint32_t kMarksShift = 11;
constexpr std::uint16_t kNegative = 0x8000, kNonfinite = 0x7fff;
SLIMPI_HD std::uint16_t scale_number(const BucketExtremes& extremes) {
  const std::uint32_t positive = positive_of(extremes), negative = negative_of(extremes);
  const std::uint32_t magnitude = positive >= negative ? positive : negative;
  const std::uint32_t number = (magnitude + (1u << kScaleShift) - 1) >> kScaleShift;
  const std::uint32_t finite = number < kMostScale ? number : kMostScale;
  const std::uint32_t side = positive >= negative ? 0 : kNegative;
  return (std::uint16_t)(magnitude >= kInfinityBits ? kNonfinite : finite | side);
}
// The scale of a bucket whose byte has `scale`.
SLIMPI_HD float scale_value(std::uint32_t base, std::uint32_t scale) {
  const std::uint32_t bits = (base + scale) << kScaleShift;
  return float_of(bits < kInfinityBits ? bits : kInfinityBits - 1);
}
// The number without side and marks.
SLIMPI_HD std::uint32_t finite_number(std::uint16_t number) {
  return number & ((1u << kMarksShift) - 1);
}
SLIMPI_HD std::uint32_t marks_of(std::uint16_t number) {
  return number >> kMarksShift & 15;
}

// The bound of all magnitudes in a finite bucket with this number.
SLIMPI_HD float greatest_of_number(std::uint16_t number) {
  return scale_value(0, finite_number(number));
}

// The base of a tile whose greatest finite scale has this number.
SLIMPI_HD std::uint32_t base_for(std::uint32_t most) {
  return (most > kLeastBase + kScales ? most : kLeastBase + kScales) - kScales;
}
// The byte of a bucket. Zeros have no side. `marks`: the tile has room for them.
SLIMPI_HD std::uint8_t scale_byte(std::uint16_t number, std::uint32_t base, bool marks) {
  const std::uint32_t finite = finite_number(number);
  const std::uint32_t scale = finite > base ? finite - base : 0;
  const std::uint32_t side = number >= kNegative ? kNegativeSide : 0;
  const bool nonfinite = !marks && marks_of(number) != 0;
  return (std::uint8_t)(nonfinite ? kNonfiniteBucket : scale == 0 ? 0 : scale | side);
}

// The bits of a level: half a bit less for an octave less. So the step of a bucket is proportional
// to the square root of its scale. half_scale() is what they depend on; zeros have no bits.
constexpr std::int32_t kMostWidth = 16;
SLIMPI_HD std::int32_t half_scale(std::uint8_t byte) {
  return (byte & 0x7f) == 0 ? -0x100000 : (byte & 0x7f) >> 1;
}
SLIMPI_HD std::int32_t width_of_half(std::int32_t half, std::int32_t detail) {
  const std::int32_t width = (detail + half) >> 3;
  const std::int32_t low = width > 0 ? width : 0;
  return low < kMostWidth ? low : kMostWidth;
}
SLIMPI_HD std::int32_t width_of(std::uint8_t byte, std::int32_t detail) {
  return width_of_half(half_scale(byte), detail);
}
// The greatest scale of a tile that has no bits, or that of its base. A finer bucket may have one.
SLIMPI_HD float scale_without_bits(const PackedHeader& header) {
  const std::int32_t scale = 2 * (7 - header.detail) + 1, most = (std::int32_t)kScales;
  const std::int32_t low = scale > 0 ? scale : 0;
  return scale_value(header.base, (std::uint32_t)(low < most ? low : most));
}
// With the first no bucket has any bits; with the last all have the most.
constexpr std::int32_t kLeastDetail = 7 - ((std::int32_t)kScales >> 1);
constexpr std::int32_t kMostDetail = 8 * kMostWidth;

// The largest level of detail for which fits(detail), which is monotonic.
template <typename Fits>
SLIMPI_HD std::int32_t most_detail(const Fits& fits) {
  std::int32_t low = kLeastDetail, high = kMostDetail;
  while (low < high) {
    const std::int32_t middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Bytes for each bit of the width of a bucket, and how many of these units a tile has room for.
constexpr std::uint32_t kUnitBytes = kPackedBucket / 8;
SLIMPI_HD std::uint32_t packed_units(const Format& format, std::uint64_t count) {
  return (std::uint32_t)((packed_tile_bytes(format, count) - packed_header_bytes(count)) /
                         kUnitBytes);
}

// The units of the first bytes of the marks.
SLIMPI_HD std::uint32_t units_of_marks(std::uint64_t buckets) {
  return (std::uint32_t)((buckets + kUnitBytes - 1) / kUnitBytes);
}

// Whether an encoder may have written this header of a tile with so many buckets. A tile with
// another one, or whose buckets and marks do not fit into it, decodes to NaN.
SLIMPI_HD bool is_header(const PackedHeader& header, std::uint64_t buckets) {
  return header.base >= kLeastBase && header.base <= kMostScale - kScales &&
         (header.marks == 0 || header.marks >= units_of_marks(buckets)) &&
         header.detail >= kLeastDetail && header.detail <= kMostDetail && header.finer <= buckets;
}

constexpr std::uint32_t kNanMark = 3;
SLIMPI_HD std::uint32_t mark_of(float x) {
  return is_finite(x) ? 0 : x != x ? kNanMark : 1 + (bits_of(x) >> 31);
}
// A value with this mark, or 0.
SLIMPI_HD float marked_value(std::uint32_t mark) {
  const std::uint32_t infinity = kInfinityBits | (mark & 2) << 30;
  return float_of(mark == 0 ? 0 : mark == kNanMark ? kNanBits : infinity);
}
// The byte of a bucket's marks. Of its values 1 << 8 * mark_of() was added up.
SLIMPI_HD std::uint32_t marks_with(std::uint32_t counts) {
  const std::uint32_t mark = counts >> 24 != 0 ? kNanMark : (counts >> 16) != 0 ? 2 : 1;
  if ((counts & 0xffffff00 & ~(0xffu << 8 * mark)) != 0) return 2;
  return mark << 2 | ((counts & 0xff) != 0 ? 1 : 0);
}
// The number of a bucket with these counts, and these extremes of its finite values.
SLIMPI_HD std::uint16_t marked_number(std::uint32_t counts, const BucketExtremes& finite) {
  return (std::uint16_t)(scale_number(finite) | marks_with(counts) << kMarksShift);
}

// The marks of a bucket: their byte, and where their units begin. One whose units would lie behind
// those of the tile is NaN.
struct PackedMarks {
  std::uint32_t byte;
  std::uint8_t* units;
};
// Bit `bit` of a mark in a bucket with this byte.
SLIMPI_HD std::uint32_t mark_bit(std::uint32_t byte, std::uint32_t mark, std::uint32_t bit) {
  return (byte & 2) == 0 ? (mark != 0 ? 1 : 0) : mark >> bit & 1;
}
// The infinity, NaN or 0 that a decoder adds to value i of the bucket.
SLIMPI_HD float marked_value(const PackedMarks& marks, std::uint32_t i) {
  std::uint32_t mark = marks.byte >> 2 & 3;
  if ((marks.byte & 3) != 0) {
    const std::uint32_t low = marks.units[i / 8] >> i % 8 & 1;
    mark = (marks.byte & 2) == 0 ? low * mark
                                 : low | (marks.units[kUnitBytes + i / 8] >> i % 8 & 1) << 1;
  }
  return marked_value(mark);
}

// The levels of a bucket with a width.
struct PackedScale {
  float step, inverse_step;
  float origin;             // kRounding + the level of zero
  std::int32_t last_level;  // kRoundingBits + 2^width - 1
};
// Adding this rounds a number of up to 22 bits to the nearest integer.
constexpr float kRounding = 0x1.8p23f;
constexpr std::int32_t kRoundingBits = 0x4b400000;

// scale / half. A power of two less in the exponent for each bit; infinite where there are none and
// the scale is above 2^127.
SLIMPI_HD float step_of(std::uint32_t base, std::uint32_t scale, std::int32_t width) {
  return scale_value(base, scale) * float_of((std::uint32_t)(128 - width) << 23);
}
SLIMPI_HD float inverse_step_of(std::uint32_t base, std::uint32_t scale, std::int32_t width) {
  return float_of((std::uint32_t)(126 + width) << 23) / scale_value(base, scale);
}
// A decoder needs no inverse.
SLIMPI_HD PackedScale packed_scale(float step, float inverse_step, std::uint8_t byte,
                                   std::int32_t width) {
  const std::int32_t levels = 1 << width, half = levels >> 1;
  const std::int32_t zero = half - 1 + byte / kNegativeSide;  // no branch: a side is at random
  return {step, inverse_step, float_of((std::uint32_t)(kRoundingBits + zero)),
          kRoundingBits + levels - 1};
}

// As kRoundingBits + the level.
SLIMPI_HD std::int32_t nearest_level(const PackedScale& scale, float x) {
  const auto level = (std::int32_t)bits_of(x * scale.inverse_step + scale.origin);
  const std::int32_t least = level > kRoundingBits ? level : kRoundingBits;
  return least < scale.last_level ? least : scale.last_level;
}
SLIMPI_HD float level_value(const PackedScale& scale, std::uint16_t level) {
  return (float_of(level | (std::uint32_t)kRoundingBits) - scale.origin) * scale.step;
}

// Whether a tile may have values above 2^100, so that rounding may make a sum infinite; and then
// a bound of the error of its values: saturated_sum() of quantizer.h.
SLIMPI_HD bool is_huge(const PackedHeader& header) {
  return header.base + kScales > kHugeScale;
}
SLIMPI_HD double slack_of(const PackedHeader& header) {
  const std::int32_t width = width_of((std::uint8_t)kScales, header.detail);
  return 2 * (double)scale_value(header.base, kScales) / (double)(1 << width);
}

}  // namespace slimpi::kernels
