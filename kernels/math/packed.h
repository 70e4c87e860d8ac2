// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the packed codec, shared by CPU and GPU loops. To give the same bytes
// everywhere, it must be compiled without fused multiply-adds and without reordering, and run with
// rounding to nearest even.
//
// A tile is divided into buckets of kPackedBucket (64) values. Each bucket has a scale and a width:
// the bits of each of its levels. A unit is 8 bytes, one bit for each value of a bucket, so the
// levels of a bucket take `width` units. An encoded tile:
//   +--------------+--------------+--------------------+- - -+-------+-------+
//   | PackedHeader | bucket bytes | levels of bucket 0 | ... | zeros | marks |
//   | 8 bytes      | 1 a bucket   | width units        |     |       |       |
//   +--------------+--------------+--------------------+- - -+-------+-------+
// A bucket byte has the scale in bits 0 to 6 and the side in bit 7. The bucket bytes are
// zero-filled up to a multiple of 4. A last bucket of less than 64 values is encoded as if zeros
// followed these values.
//
// The message has no widths: width_of() computes the width of a bucket from its scale and from the
// level of detail, the precision of the tile. Since the length of a tile depends only on
// Format::bits and the number of its values, the encoder takes the largest level of detail whose
// units fit into the tile. The units that are left go to the first buckets of the tile: as many of
// them as possible (PackedHeader::finer) get a level of detail that is greater by 1.
//
// Each level is cut into pieces, beginning at its lowest bits; with width 13 they have 8, 4 and 1
// bits. The pieces of all levels of a bucket are stored together:
//   8 bits, if width >= 8   64 bytes; byte i has level i
//   8 bits, if width & 16   64 bytes; the same for the next 8 bits
//   4 bits, if width & 4    32 bytes; byte i has levels i and i + 32, from its low bits on
//   2 bits, if width & 2    16 bytes; byte i has levels i, i + 16, i + 32, i + 48
//   1 bit, if width & 1     8 bytes; byte i has levels i, i + 8, ... i + 56
// Neither vector registers nor warps then have to move bits between distant lanes.
//
// A scale is a float with three bits of mantissa, so there are 8 scales per octave. The scale of a
// bucket is the least one that is not below the greatest magnitude of its values, so it is at most
// 9/8 of that magnitude. The scale number is the bits of this float, shifted right by kScaleShift,
// so that consecutive scales have consecutive numbers. A tile has 127 scales, which span almost 16
// octaves. The last of them is the scale of the bucket with the greatest values, unless these are
// tiny. A bucket byte holds the scale number minus PackedHeader::base. A bucket whose scale would
// be below these 127, or at most 2^-110, gets scale 0, and all its values decode to 0. With half =
// 2^(width - 1) and step = scale / half, the levels stand for q * step, with
//   -half < q <= half    if the value with the greatest magnitude is positive
//   -half <= q < half    if that value is negative: the side
// The product q * step is exact. With u = 2^-24, a value x decodes to x' with |x' - x| <= step/2 +
// 3 u |x|. On the side that has one level less, a value beyond the last level has |x' - x| <= step
// + 3 u |x|. With width 0, step = 2 * scale and x' = 0. The value 0 is exact, as +0. The greatest
// scale is the greatest float, whose multiples may be rounded.
//
// An infinity or a NaN is encoded as 0 among the levels, and also has a mark: 1 for infinity, 2 for
// -infinity, 3 for a NaN. The marks are the last PackedHeader::marks units of a tile. They begin
// with a marks byte for each bucket, zero-filled up to a whole unit. Bits 0 and 1 of this byte say
// how many units of marks the bucket has; these units follow in the order of the buckets. Bits 2
// and 3 hold a mark:
//   0 units   all values of the bucket have this mark; if it is 0, no value has a mark
//   1 unit    value i has this mark if bit i of the unit is set
//   2 units   the first has the low bits of the marks of all values, the second the high bits
// If the tile has no room for its marks (many infinities and NaNs with less than 3 bits), the
// buckets with infinities or NaNs decode to NaN.
#pragma once
#include "kernels/format.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels {

constexpr int kScaleShift = 20;                  // the low bits that are 0 in every scale
constexpr std::uint32_t kScales = 127;           // the scales of a tile, besides the scale 0
constexpr std::uint32_t kLeastBase = 136;        // the scale number of 2^-110
constexpr std::uint32_t kMostScale = 0x7f8;      // the scale number of the greatest float
constexpr std::uint32_t kHugeScale = 0x718;      // the scale number of 2^100
constexpr std::uint8_t kNegativeSide = 0x80;     // in a bucket byte: the side is negative
constexpr std::uint8_t kNonfiniteBucket = 0x80;  // a bucket byte: all values decode to NaN

struct PackedHeader {
  std::uint16_t base;   // base + the scale in a bucket byte is the scale number
  std::int16_t detail;  // the level of detail
  std::uint16_t finer;  // the number of buckets, from the first on, with detail + 1
  std::uint16_t marks;  // how many units the marks take
};

// The extremes of a bucket's values, found by the encoder, which compares the values' bits as
// integers. `high` is the greatest of them as signed integers, which belongs to the greatest
// number; `low` is the greatest as unsigned integers, which belongs to the most negative number.
struct BucketExtremes {
  std::int32_t high = INT32_MIN;
  std::uint32_t low = 0;
};
SLIMPI_HD void include(BucketExtremes& extremes, std::uint32_t bits) {
  const auto number = (std::int32_t)bits;
  extremes.high = extremes.high > number ? extremes.high : number;
  extremes.low = extremes.low > bits ? extremes.low : bits;
}
// positive_of() returns the bits of the greatest positive number, negative_of() those of the
// magnitude of the most negative number. Both return 0 if there is no number of that sign.
SLIMPI_HD std::uint32_t positive_of(const BucketExtremes& extremes) {
  return extremes.high > 0 ? (std::uint32_t)extremes.high : 0;
}
SLIMPI_HD std::uint32_t negative_of(const BucketExtremes& extremes) {
  return extremes.low > 0x80000000 ? extremes.low - 0x80000000 : 0;
}

// Returns the scale number of a bucket with these extremes: 0 for zeros, kNonfinite if an element
// is not finite. The bit kNegative is set if the value of the greatest magnitude is negative. In a
// bucket with marks, marked_number() puts the marks byte into the bits from kMarksShift on.
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
// Returns the scale of a bucket as a float. `base` is PackedHeader::base, and `scale` is the scale
// in the bucket byte, which counts from this base.
SLIMPI_HD float scale_value(std::uint32_t base, std::uint32_t scale) {
  const std::uint32_t bits = (base + scale) << kScaleShift;
  return float_of(bits < kInfinityBits ? bits : kInfinityBits - 1);
}
// Returns a scale number without the bits of the side and the marks byte.
SLIMPI_HD std::uint32_t finite_number(std::uint16_t number) {
  return number & ((1u << kMarksShift) - 1);
}
// Returns the marks byte that a scale number includes, or 0 if the bucket has no marks.
SLIMPI_HD std::uint32_t marks_of(std::uint16_t number) {
  return number >> kMarksShift & 15;
}

// Returns, as a float, the scale that a scale number stands for. If all values of a bucket with
// this scale are finite, none exceeds it in magnitude.
SLIMPI_HD float greatest_of_number(std::uint16_t number) {
  return scale_value(0, finite_number(number));
}

// Returns PackedHeader::base for a tile whose greatest finite scale has the number `most`.
SLIMPI_HD std::uint32_t base_for(std::uint32_t most) {
  return (most > kLeastBase + kScales ? most : kLeastBase + kScales) - kScales;
}
// Returns the bucket byte for a scale number. A bucket of zeros has no side. `marks` says whether
// the tile has room for marks; if not, all values of a bucket that needs marks will decode to NaN.
SLIMPI_HD std::uint8_t scale_byte(std::uint16_t number, std::uint32_t base, bool marks) {
  const std::uint32_t finite = finite_number(number);
  const std::uint32_t scale = finite > base ? finite - base : 0;
  const std::uint32_t side = number >= kNegative ? kNegativeSide : 0;
  const bool nonfinite = !marks && marks_of(number) != 0;
  return (std::uint8_t)(nonfinite ? kNonfiniteBucket : scale == 0 ? 0 : scale | side);
}

// width_of() returns the width of a bucket with this bucket byte: floor((detail + half_scale) / 8),
// limited to 0 .. kMostWidth. The width grows by half a bit per octave of scales, so the step of a
// bucket is about proportional to the square root of its scale. A bucket of zeros has width 0.
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
// Returns the greatest scale whose buckets have width 0 in the tile, or the scale with the number
// `base` if there is none. (Buckets of this scale may still have width 1 if they are among the
// first PackedHeader::finer.)
SLIMPI_HD float scale_without_bits(const PackedHeader& header) {
  const std::int32_t scale = 2 * (7 - header.detail) + 1, most = (std::int32_t)kScales;
  const std::int32_t low = scale > 0 ? scale : 0;
  return scale_value(header.base, (std::uint32_t)(low < most ? low : most));
}
// With kLeastDetail every bucket has width 0. With kMostDetail every bucket has kMostWidth, unless
// its values are all 0.
constexpr std::int32_t kLeastDetail = 7 - ((std::int32_t)kScales >> 1);
constexpr std::int32_t kMostDetail = 8 * kMostWidth;

// Returns the largest level of detail that makes fits(detail) true. fits() must be monotonic.
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

// The bytes of a unit, and the number of units that a tile has room for, levels and marks together.
constexpr std::uint32_t kUnitBytes = kPackedBucket / 8;
SLIMPI_HD std::uint32_t packed_units(const Format& format, std::uint64_t count) {
  return (std::uint32_t)((packed_tile_bytes(format, count) - packed_header_bytes(count)) /
                         kUnitBytes);
}

// Returns the units that the marks bytes of a tile take.
SLIMPI_HD std::uint32_t units_of_marks(std::uint64_t buckets) {
  return (std::uint32_t)((buckets + kUnitBytes - 1) / kUnitBytes);
}

// Returns whether an encoder can have written this header for a tile of so many buckets. A tile
// with any other header decodes to NaN, and so does a tile that is too short for its levels and
// marks.
SLIMPI_HD bool is_header(const PackedHeader& header, std::uint64_t buckets) {
  return header.base >= kLeastBase && header.base <= kMostScale - kScales &&
         (header.marks == 0 || header.marks >= units_of_marks(buckets)) &&
         header.detail >= kLeastDetail && header.detail <= kMostDetail && header.finer <= buckets;
}

constexpr std::uint32_t kNanMark = 3;
SLIMPI_HD std::uint32_t mark_of(float x) {
  return is_finite(x) ? 0 : x != x ? kNanMark : 1 + (bits_of(x) >> 31);
}
// Returns the infinity or NaN that this mark stands for; 0 for mark 0.
SLIMPI_HD float marked_value(std::uint32_t mark) {
  const std::uint32_t infinity = kInfinityBits | (mark & 2) << 30;
  return float_of(mark == 0 ? 0 : mark == kNanMark ? kNanBits : infinity);
}
// Returns the marks byte of a bucket. Byte m of `counts` is the number of its values x with
// mark_of(x) == m.
SLIMPI_HD std::uint32_t marks_with(std::uint32_t counts) {
  const std::uint32_t mark = counts >> 24 != 0 ? kNanMark : (counts >> 16) != 0 ? 2 : 1;
  if ((counts & 0xffffff00 & ~(0xffu << 8 * mark)) != 0) return 2;
  return mark << 2 | ((counts & 0xff) != 0 ? 1 : 0);
}
// Returns the scale number of a bucket with infinities or NaNs, combined with its marks byte.
// `finite` has the extremes of its finite values; for `counts` see marks_with().
SLIMPI_HD std::uint16_t marked_number(std::uint32_t counts, const BucketExtremes& finite) {
  return (std::uint16_t)(scale_number(finite) | marks_with(counts) << kMarksShift);
}

// The marks of a bucket: its marks byte and its first unit of marks. If these units would exceed
// the tile, all values of the bucket have the mark of NaN.
struct PackedMarks {
  std::uint32_t byte;
  std::uint8_t* units;
};
// Returns bit `bit` of a value's mark as the bucket stores it; `byte` is the bucket's marks byte.
// With one unit of marks, a bucket only stores whether a value has a mark.
SLIMPI_HD std::uint32_t mark_bit(std::uint32_t byte, std::uint32_t mark, std::uint32_t bit) {
  return (byte & 2) == 0 ? (mark != 0 ? 1 : 0) : mark >> bit & 1;
}
// Returns what a decoder adds to value i of the bucket: an infinity, a NaN, or 0 without a mark.
SLIMPI_HD float marked_value(const PackedMarks& marks, std::uint32_t i) {
  std::uint32_t mark = marks.byte >> 2 & 3;
  if ((marks.byte & 3) != 0) {
    const std::uint32_t low = marks.units[i / 8] >> i % 8 & 1;
    mark = (marks.byte & 2) == 0 ? low * mark
                                 : low | (marks.units[kUnitBytes + i / 8] >> i % 8 & 1) << 1;
  }
  return marked_value(mark);
}

// The constants with which values are rounded to the levels of a bucket, and levels decoded.
struct PackedScale {
  float step, inverse_step;
  float origin;             // kRounding + the level that stands for 0
  std::int32_t last_level;  // kRoundingBits + 2^width - 1
};
// Adding kRounding to a number of up to 22 bits rounds that number to the nearest integer.
constexpr float kRounding = 0x1.8p23f;
constexpr std::int32_t kRoundingBits = 0x4b400000;

// Returns the step of a bucket: scale / half = scale * 2^(1 - width). The step is infinite if the
// width is 0 and the scale 2^127 or more.
SLIMPI_HD float step_of(std::uint32_t base, std::uint32_t scale, std::int32_t width) {
  return scale_value(base, scale) * float_of((std::uint32_t)(128 - width) << 23);
}
SLIMPI_HD float inverse_step_of(std::uint32_t base, std::uint32_t scale, std::int32_t width) {
  return float_of((std::uint32_t)(126 + width) << 23) / scale_value(base, scale);
}
// Returns the PackedScale of a bucket with this bucket byte. A decoder does not need inverse_step
// and may pass anything.
SLIMPI_HD PackedScale packed_scale(float step, float inverse_step, std::uint8_t byte,
                                   std::int32_t width) {
  const std::int32_t levels = 1 << width, half = levels >> 1;
  const std::int32_t zero = half - 1 + byte / kNegativeSide;  // no branch: sides are random
  return {step, inverse_step, float_of((std::uint32_t)(kRoundingBits + zero)),
          kRoundingBits + levels - 1};
}

// Returns kRoundingBits + the level nearest to x.
SLIMPI_HD std::int32_t nearest_level(const PackedScale& scale, float x) {
  const auto level = (std::int32_t)bits_of(x * scale.inverse_step + scale.origin);
  const std::int32_t least = level > kRoundingBits ? level : kRoundingBits;
  return least < scale.last_level ? least : scale.last_level;
}
SLIMPI_HD float level_value(const PackedScale& scale, std::uint16_t level) {
  return (float_of(level | (std::uint32_t)kRoundingBits) - scale.origin) * scale.step;
}

// is_huge() returns whether a tile may have values above 2^100, where rounding may make a sum
// infinite. slack_of() returns a bound of the error of a huge tile's values, for saturated_sum() in
// quantizer.h.
SLIMPI_HD bool is_huge(const PackedHeader& header) {
  return header.base + kScales > kHugeScale;
}
SLIMPI_HD double slack_of(const PackedHeader& header) {
  const std::int32_t width = width_of((std::uint8_t)kScales, header.detail);
  return 2 * (double)scale_value(header.base, kScales) / (double)(1 << width);
}

}  // namespace slimpi::kernels
