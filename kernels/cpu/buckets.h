// SPDX-License-Identifier: BSD-3-Clause
// A quantized bucket, from floats to bytes and back, tile by tile. Included by loops.cpp alone.
#pragma once
#include "kernels/cpu/tiles.h"

namespace slimpi::kernels {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(Header);

void pack_tile(int bits, std::uint8_t* levels, std::size_t n, bool last, std::byte* out,
               std::size_t room) {
  switch (bits) {
    case 1:
      return pack_tile<1>(levels, n, last, out, room);
    case 2:
      return pack_tile<2>(levels, n, last, out, room);
    case 3:
      return pack_tile<3>(levels, n, last, out, room);
    case 4:
      return pack_tile<4>(levels, n, last, out, room);
    case 5:
      return pack_tile<5>(levels, n, last, out, room);
    case 6:
      return pack_tile<6>(levels, n, last, out, room);
    default:
      return pack_tile<7>(levels, n, last, out, room);
  }
}

void unpack_tile(int bits, const std::byte* in, std::size_t room, std::size_t n,
                 std::uint8_t* levels) {
  switch (bits) {
    case 1:
      return unpack_tile<1>(in, room, n, levels);
    case 2:
      return unpack_tile<2>(in, room, n, levels);
    case 3:
      return unpack_tile<3>(in, room, n, levels);
    case 4:
      return unpack_tile<4>(in, room, n, levels);
    case 5:
      return unpack_tile<5>(in, room, n, levels);
    case 6:
      return unpack_tile<6>(in, room, n, levels);
    default:
      return unpack_tile<7>(in, room, n, levels);
  }
}

// An encoded bucket that is being read.
struct Bucket {
  int bits;
  bool marked, wide;
  Grid<float> narrow_grid;
  Grid<double> wide_grid;
  const std::byte* packed;
  std::size_t packed_size;
};

// Reads the header of the bucket of n elements at `in`.
Bucket open_bucket(const Format& format, const std::byte* in, std::size_t n) {
  Bucket bucket{};
  Header header;
  std::memcpy(&header, in, sizeof header);
  bucket.bits = format.bits;
  bucket.packed = in + kHeaderBytes;
  bucket.packed_size = packed_bytes(format.bits, n);
  bucket.marked = is_marked(header);
  if (bucket.marked) return bucket;
  bucket.wide = is_wide(header);
  if (bucket.wide)
    bucket.wide_grid = grid_of<double>(header, format.bits, format.stochastic);
  else
    bucket.narrow_grid = grid_of<float>(header, format.bits, format.stochastic);
  return bucket;
}

// The levels of elements first .. first + n - 1 of a bucket, at most a tile of them; `first` is a
// multiple of 8. `spread` has room for a tile.
const std::uint8_t* read_levels(const Bucket& bucket, std::size_t first, std::size_t n,
                                std::uint8_t* spread) {
  if (bucket.bits == 8) return (const std::uint8_t*)bucket.packed + first;
  const std::size_t skip = first / 8 * bucket.bits;
  unpack_tile(bucket.bits, bucket.packed + skip, bucket.packed_size - skip, n, spread);
  return spread;
}

// to = elements first .. of the bucket, and to += them.
void read_bucket(const Bucket& bucket, std::size_t first, std::size_t n, float* to) {
  if (bucket.marked) {
    for (std::size_t i = 0; i < n; ++i) to[i] = nan_value();
    return;
  }
  std::uint8_t spread[kTile];
  const std::uint8_t* levels = read_levels(bucket, first, n, spread);
  if (bucket.wide)
    from_levels(bucket.wide_grid, levels, n, to);
  else
    from_levels(bucket.narrow_grid, levels, n, to);
}
void accumulate_bucket(const Bucket& bucket, std::size_t first, std::size_t n, float* to) {
  if (bucket.marked) {
    for (std::size_t i = 0; i < n; ++i) to[i] = nan_value();
    return;
  }
  std::uint8_t spread[kTile];
  const std::uint8_t* levels = read_levels(bucket, first, n, spread);
  if (bucket.wide)
    accumulate_levels(bucket.wide_grid, levels, n, to);
  else
    accumulate_levels(bucket.narrow_grid, levels, n, to);
}

// What a bucket is encoded from, and what is kept of it beside its bytes. Null where there is none.
struct Values {
  const float* in;
  float* residual;  // added before, and what was lost after
  float* decoded;   // x'; may be `in`
};

// The extremes of in + residual.
Extremes extremes_of(const Values& values, std::size_t n) {
  Extremes extremes = no_extremes();
  float summed[kTile];
  for (std::size_t i = 0; i < n; i += kTile) {
    const std::size_t tile = n - i < kTile ? n - i : kTile;
    const float* from = values.in + i;
    if (values.residual != nullptr) {
      add_tiles(from, values.residual + i, tile, summed);
      from = summed;
    }
    include_tile(extremes, from, tile);
  }
  return extremes;
}

template <typename Real>
void encode_levels(const Format& format, const Draw& draw, const Header& header,
                   const Values& values, std::size_t n, std::byte* packed) {
  const Grid<Real> grid = grid_of<Real>(header, format.bits, format.stochastic);
  const std::size_t packed_size = packed_bytes(format.bits, n);
  float summed[kTile], decoded[kTile];
  std::uint8_t spread[kTile];
  std::uint32_t words[kTile + 6];
  for (std::size_t i = 0; i < n; i += kTile) {
    const std::size_t tile = n - i < kTile ? n - i : kTile, skip = i / 8 * format.bits;
    const float* from = values.in + i;
    if (values.residual != nullptr) {
      add_tiles(from, values.residual + i, tile, summed);
      from = summed;
    }
    std::uint8_t* levels = format.bits == 8 ? (std::uint8_t*)packed + i : spread;
    if (format.stochastic)
      to_stochastic_levels(grid, from, draw_words(draw, draw.first + i, tile, words), tile, levels);
    else
      to_nearest_levels(grid, from, tile, levels);
    if (values.residual != nullptr) {
      from_levels(grid, levels, tile, decoded);
      for (std::size_t j = 0; j < tile; ++j) values.residual[i + j] = from[j] - decoded[j];
      if (values.decoded != nullptr) std::memcpy(values.decoded + i, decoded, tile * sizeof(float));
    } else if (values.decoded != nullptr) {
      from_levels(grid, levels, tile, values.decoded + i);
    }
    const bool last = i + tile == n;
    if (format.bits != 8)
      pack_tile(format.bits, levels, tile, last, packed + skip, packed_size - skip);
    else if (last && packed_size != n)
      std::memset(packed + n, 0, packed_size - n);
  }
}

// Writes the bucket of n elements whose extremes are known. `draw.first` is its first element.
void encode_bucket(const Format& format, const Draw& draw, const Extremes& extremes,
                   const Values& values, std::size_t n, std::byte* out) {
  const Header header = header_of(extremes);
  std::memcpy(out, &header, sizeof header);
  if (is_marked(header)) {
    std::memset(out + kHeaderBytes, 0, packed_bytes(format.bits, n));
    if (values.decoded != nullptr)
      for (std::size_t i = 0; i < n; ++i) values.decoded[i] = nan_value();
  } else if (is_wide(header)) {
    encode_levels<double>(format, draw, header, values, n, out + kHeaderBytes);
  } else {
    encode_levels<float>(format, draw, header, values, n, out + kHeaderBytes);
  }
}

}  // namespace
}  // namespace slimpi::kernels
