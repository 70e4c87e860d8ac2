// SPDX-License-Identifier: BSD-3-Clause
// The loops of the min-max quantizer: they encode and decode the buckets (values that share a
// minimum and a maximum) of a quantized segment, one L1-sized tile at a time. Included by loops.cpp
// alone.
#pragma once
#include <cstring>

#include "kernels/cpu/packing.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/tiles.h"

namespace slimpi::kernels {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(Header);

// Working memory of one tile. It is allocated, because a thread of the program may have a small
// stack.
struct TileScratch {
  union {
    Levels<Narrow> narrow;
    Levels<Wide> wide;
  };
  float summed[kTile];
  float back[kTile];
  double exact[kTile];
  std::uint32_t words[kTile + kRandomSlack];

  // Returns the memory of the levels as levels of type `Level`. Both types share this memory, and
  // only one of them is in use at a time.
  template <typename Level>
  Levels<Level>& levels() {
    if constexpr (sizeof(Level) == sizeof(Narrow))
      return narrow;
    else
      return wide;
  }
};

// A bucket that is being decoded: its parsed header and where its levels are.
struct Bucket {
  int bits;
  bool nonfinite, extended;
  Scale<float> scale_float;
  Scale<double> scale_double;
  const std::byte* packed;
  std::size_t packed_size;
  TileScratch* scratch;
};

// Parses the header of the encoded bucket of n elements at `in`, and prepares `bucket` for reading.
SLIMPI_HD void open_bucket(const Format& format, const std::byte* in, std::size_t n,
                           TileScratch& scratch, Bucket& bucket) {
  Header header;
  std::memcpy(&header, in, sizeof header);
  bucket.bits = format.bits;
  bucket.scratch = &scratch;
  bucket.packed = in + kHeaderBytes;
  bucket.packed_size = packed_bytes(format.bits, n);
  bucket.nonfinite = is_nonfinite(header);
  if (bucket.nonfinite) return;
  bucket.extended = is_extended_range(header);
  if (bucket.extended)
    bucket.scale_double = scale_of<double>(header, format.bits, format.stochastic);
  else
    bucket.scale_float = scale_of<float>(header, format.bits, format.stochastic);
}

// Returns the levels of elements first .. first + n - 1 of a bucket, where `first` is a multiple of
// 8 and n at most a tile. The result points into the message if it holds whole bytes or words
// there; otherwise the levels are unpacked to `spread`.
template <typename Level>
const Level* read_levels(const Bucket& bucket, std::size_t first, std::size_t n,
                         Levels<Level>& spread) {
  if (bucket.bits == kBits<Level>) return (const Level*)bucket.packed + first;
  const std::size_t skip = first / 8 * bucket.bits;
  unpack(bucket.bits, bucket.packed + skip, bucket.packed_size - skip, n, spread);
  return spread.values();
}

// Calls visit(scale, levels) for elements first .. first + n - 1. The bucket must not be
// non-finite, because only other buckets have a scale.
template <typename Visit>
void with_levels(const Bucket& bucket, std::size_t first, std::size_t n, const Visit& visit) {
  const auto of_type = [&](auto type) {
    const auto* levels = read_levels(bucket, first, n, bucket.scratch->levels<decltype(type)>());
    if (bucket.extended)
      visit(bucket.scale_double, levels);
    else
      visit(bucket.scale_float, levels);
  };
  if (bucket.bits <= kBits<Narrow>)
    of_type(Narrow());
  else
    of_type(Wide());
}

// Decode elements first .. first + n - 1 of the bucket: read_bucket() stores them to `to`, and
// add_bucket() stores sum + element. `to` may be `sum`.
void read_bucket(const Bucket& bucket, std::size_t first, std::size_t n, float* to) {
  if (bucket.nonfinite) return fill_nan(to, n);
  with_levels(bucket, first, n,
              [&](const auto& scale, const auto* levels) { from_levels(scale, levels, n, to); });
}
void add_bucket(const Bucket& bucket, std::size_t first, std::size_t n, const float* sum,
                float* to) {
  if (bucket.nonfinite) return fill_nan(to, n);
  with_levels(bucket, first, n, [&](const auto& scale, const auto* levels) {
    add_levels(scale, levels, n, sum, to);
  });
}
// Adds like add_bucket(), and collects the extremes of the sums for the encoder that follows. A
// non-finite bucket leaves `to` unwritten, since the NaN in `extremes` already makes the result
// non-finite.
void include_bucket(Extremes& extremes, const Bucket& bucket, std::size_t first, std::size_t n,
                    const float* sum, float* to) {
  if (bucket.nonfinite) return include(extremes, kNanBits);
  with_levels(bucket, first, n, [&](const auto& scale, const auto* levels) {
    include_sum(extremes, scale, levels, n, sum, to);
  });
}

// The input of a bucket's encoder, and its outputs besides the encoded bytes. x is a value that is
// encoded, x' its decoded value. All pointers but `in` may be null.
struct Values {
  const float* in;
  const float* added;     // the old residual: encodes x = in + `added`, clamped to `limit`
  float limit;            // the limit of |added|
  float* residual;        // output: x - x'; may be `added`
  float* decoded;         // output: x'; may be `in`
  const float* upcoming;  // the next bucket, whose second half is prefetched in the same pass
};

// Encodes a finite or infinite bucket tile by tile: computes x, rounds it to levels, writes the
// residual and the decoded values, and packs the levels to `packed`. `Level` is the integer type of
// a level of format.bits bits; Real is double for an extended-range bucket.
template <typename Real, typename Level>
void encode_levels(const Format& format, const RandomStream& random, const Header& header,
                   const Values& values, std::size_t n, TileScratch& scratch, std::byte* packed) {
  const Scale<Real> scale = scale_of<Real>(header, format.bits, format.stochastic);
  const std::size_t packed_size = packed_bytes(format.bits, n);
  // If `direct`, levels of 8 or 16 bits go to the message without packing. If `at_once`, one loop
  // computes both the levels and the decoded values. The two exclude each other, because that loop
  // would write to two arrays outside the scratch memory in L1, and two loops are then faster if
  // two threads share a core.
  const bool direct = format.bits == kBits<Level>;
  const bool at_once =
      values.decoded != nullptr && values.residual == nullptr && !format.stochastic && !direct;
  for (std::size_t i = 0; i < n; i += kTile) {
    const std::size_t tile = tile_at(i, n), skip = i / 8 * format.bits;
    const bool last = i + tile == n;
    const float* from = values.in + i;
    if (values.added != nullptr) {
      for (std::size_t j = 0; j < tile; ++j)
        scratch.summed[j] = from[j] + clamp_residual(values.added[i + j], values.limit);
      from = scratch.summed;
    }
    Levels<Level>& spread = scratch.levels<Level>();
    Level* levels = direct ? (Level*)packed + i : spread.values();
    if (format.stochastic) {
      to_stochastic_levels(scale, from, random_words(random, random.first + i, tile, scratch.words),
                           tile, levels);
    } else if (values.upcoming != nullptr) {
      for (std::size_t j = 0; j < tile; j += kStep) {
        const std::size_t step = tile - j < kStep ? tile - j : kStep;
        prefetch(values.upcoming + n / 2 + j / 2, step * sizeof(float) / 2);
        to_nearest_levels(scale, from + j, step, levels + j);
      }
    } else if (at_once) {
      to_nearest_levels(scale, from, tile, levels, values.decoded + i);
    } else {
      to_nearest_levels(scale, from, tile, levels);
    }
    if (values.residual != nullptr && values.decoded != nullptr)
      subtract_levels(scale, levels, from, tile, values.residual + i, values.decoded + i);
    else if (values.residual != nullptr)
      subtract_levels(scale, levels, from, tile, values.residual + i);
    else if (values.decoded != nullptr && !at_once)
      from_levels(scale, levels, tile, values.decoded + i);
    if (!direct)
      pack(format.bits, spread, tile, last, packed + skip, packed_size - skip);
    else if (last)
      for (std::size_t j = n * sizeof(Level); j < packed_size; ++j) packed[j] = std::byte{0};
  }
}

// Returns the header of an infinite bucket: `extremes` are those of all `values`, of which only the
// finite ones enter the header.
[[gnu::noinline]] Header infinite_header(const Format& format, const Header& extremes,
                                         const float* values, std::size_t n) {
  Extremes of_finite = no_extremes();
  for (std::size_t i = 0; i < n; ++i)
    if (is_finite(values[i])) include(of_finite, bits_of(values[i]));
  return infinite_header(extremes, of_finite, format.bits);
}

// Encodes a bucket of n elements whose extremes are known. Element 0 uses number random.first of
// the random stream.
void encode_bucket(const Format& format, const RandomStream& random, const Header& extremes,
                   const Values& values, std::size_t n, TileScratch& scratch, std::byte* out) {
  const Header header =
      has_infinity(extremes) ? infinite_header(format, extremes, values.in, n) : extremes;
  std::memcpy(out, &header, sizeof header);
  if (is_nonfinite(header)) {
    std::memset(out + kHeaderBytes, 0, packed_bytes(format.bits, n));
    if (values.decoded != nullptr) fill_nan(values.decoded, n);
  } else {
    const bool extended = is_extended_range(header);
    const auto encode = format.bits <= kBits<Narrow> ? extended ? encode_levels<double, Narrow>
                                                                : encode_levels<float, Narrow>
                        : extended ? encode_levels<double, Wide>
                                                     : encode_levels<float, Wide>;
    Values wanted = values;
    if (is_infinite(header)) wanted.added = wanted.residual = nullptr;
    encode(format, random, header, wanted, n, scratch, out + kHeaderBytes);
  }
}

// Returns the header that a bucket has once residuals are added. `fresh` is the header of the
// values alone, and `sums` the extremes of value + clamped residual.
SLIMPI_HD Header with_residuals(const Format& format, const Header& fresh, const Extremes& sums,
                                float limit) {
  return keeps_header(format, fresh) ? fresh : header_of_sums(format, header_of(sums), limit);
}

// Encodes `in` + the clamped residual. Rounding needs the extremes of these sums, so a pass before
// it adds the residuals. If the bucket fits into a tile, this pass keeps the sums for the encoder;
// in a longer bucket the encoder adds the residuals again.
void encode_with_residual(const Format& format, const RandomStream& random, const float* in,
                          float* residual, std::size_t n, TileScratch& scratch, std::byte* out) {
  Extremes alone = no_extremes(), extremes = no_extremes();
  include_tile(alone, in, n);
  const Header fresh = header_of(alone);
  const float limit = residual_limit(format, fresh);
  for (std::size_t i = 0; i < n; i += kTile)
    include_residual(extremes, in + i, residual + i, limit, tile_at(i, n), scratch.summed);
  const bool in_tile = n <= kTile;
  const Values values = {in_tile ? scratch.summed : in,
                         in_tile ? nullptr : residual,
                         limit,
                         residual,
                         nullptr,
                         nullptr};
  encode_bucket(format, random, with_residuals(format, fresh, extremes, limit), values, n, scratch,
                out);
}

}  // namespace
}  // namespace slimpi::kernels
