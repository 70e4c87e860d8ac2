// SPDX-License-Identifier: BSD-3-Clause
// The format of an encoded segment: consecutive floats of a buffer, encoded independently of other
// segments. The format and the values, and with stochastic rounding the RandomStream, determine
// every byte. Included by host and CUDA code.
//
// The bytes of a segment of `count` floats, by its codec:
//   a value codec         the values one after the other (kernels/codecs.h)
//   float64               the floats unchanged; two of them are the memory of one double, so counts
//                         and the boundaries of segments are even
//   quantized             buckets one after the other; a bucket is
//                           float minimum, float maximum, then `bits` bits per value, packed
//                         The values are packed in groups of 8. A group is a little-endian integer
//                         of `bits` bytes, in which value i has bits [i*bits, (i+1)*bits); the last
//                         group may be short. Zeros pad the packed values of a bucket to a multiple
//                         of 4 bytes, so every header is aligned to 4.
//   packed                tiles one after the other (kernels/math/packed.h); a tile takes
//                         `bits` / 2 bits for each value, its header included
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/codecs.h"

namespace slimpi::kernels {

constexpr int kMostBits = 16;  // the most bits of a level

// The packed codec gives kPackedBucket values a common scale; a tile has at most kMostPackedTile
// values.
constexpr std::uint32_t kPackedBucket = 64, kMostPackedTile = 65536;

struct Format {
  Codec codec = Codec::float32;
  std::uint8_t bits = 8;       // bits of a value. quantized: 1 to kMostBits; packed: in half bits
                               // (5 means 2.5 bits a value), 2 to 2 * kMostBits
  bool stochastic = false;     // quantized only: rounds stochastically, not to nearest
  std::uint32_t bucket = 512;  // quantized: values per bucket; 0 = the whole segment is one;
                               // packed: values per tile, a multiple of kPackedBucket
};

// The part of a random stream that a segment uses for stochastic rounding: element i takes number
// `first + i` of the stream (seed, rank, call). Each rank has streams of its own. Host and GPU
// compute the same numbers.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t rank = 0;
  std::uint64_t call = 0;
  std::uint64_t first = 0;
};

// Returns the bits per encoded value, rounded up, without the headers of buckets.
SLIMPI_HD int value_bits(const Format& format) {
  if (format.codec == Codec::packed) return (format.bits + 1) / 2;
  return format.codec == Codec::quantized ? format.bits : value_bits(format.codec);
}

// Returns the bytes that `count` packed levels of `bits` bits take, padded to a multiple of 4.
SLIMPI_HD std::uint64_t packed_bytes(int bits, std::uint64_t count) {
  return ((count * std::uint64_t(bits) + 7) / 8 + 3) / 4 * 4;
}

// Returns how many elements share a scale (a bucket) in a segment of `count` elements.
SLIMPI_HD std::uint64_t bucket_elements(const Format& format, std::uint64_t count) {
  return format.bucket == 0 || format.bucket > count ? count : format.bucket;
}

// The sizes of a tile of `count` values of the packed codec: packed_buckets() returns the number of
// its buckets, packed_header_bytes() the bytes before the levels, and packed_tile_bytes() the bytes
// of the whole tile. With this codec Format::bits counts half bits, so a tile takes Format::bits /
// 2 bits for each value. A last bucket that is not full takes as many bytes as a full one. A tile
// of one or two buckets may take more, because its header must fit in.
SLIMPI_HD std::uint64_t packed_buckets(std::uint64_t count) {
  return (count + kPackedBucket - 1) / kPackedBucket;
}
SLIMPI_HD std::uint64_t packed_header_bytes(std::uint64_t count) {
  return 8 + (packed_buckets(count) + 3) / 4 * 4;
}
// Returns the largest number of values with which an encoded tile takes at most 16 KiB, which is
// the length of a small segment.
SLIMPI_HD constexpr std::uint32_t longest_packed_tile(int half_bits) {
  const std::uint32_t values =
      (std::uint32_t)((16 << 14) / half_bits) / kPackedBucket * kPackedBucket;
  return values < kMostPackedTile ? values : kMostPackedTile;
}
SLIMPI_HD std::uint64_t packed_tile_bytes(const Format& format, std::uint64_t count) {
  const std::uint64_t of_bits = packed_buckets(count) * (kPackedBucket / 16) * format.bits;
  const std::uint64_t least = packed_header_bytes(count) + kPackedBucket / 8 * (format.bits / 2);
  return of_bits > least ? of_bits : least;
}

// Returns the bytes of an encoded segment of `count` elements; 0 for an empty segment.
SLIMPI_HD std::uint64_t encoded_bytes(const Format& format, std::uint64_t count) {
  if (format.codec == Codec::packed) {
    const std::uint64_t rest = count % format.bucket;
    return count / format.bucket * packed_tile_bytes(format, format.bucket) +
           (rest == 0 ? 0 : packed_tile_bytes(format, rest));
  }
  if (format.codec != Codec::quantized) return std::uint64_t(value_bits(format.codec) / 8) * count;
  if (count == 0) return 0;
  const std::uint64_t bucket = bucket_elements(format, count);
  const std::uint64_t whole = count / bucket, rest = count % bucket;
  return whole * (8 + packed_bytes(format.bits, bucket)) +
         (rest == 0 ? 0 : 8 + packed_bytes(format.bits, rest));
}

}  // namespace slimpi::kernels
