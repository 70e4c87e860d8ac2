// SPDX-License-Identifier: BSD-3-Clause
// Kernels::encode, sum_encode, decode and decode_add of packed segments.
#include "kernels/cuda/packed.h"

#include "kernels/math/feedback.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels::cuda {

template <bool added>
SLIMPI_DEVICE void packed_decode(const PackedDecodeArguments& a) {
  __shared__ PackedSource source;
  __shared__ std::uint32_t lanes[kWarpThreads];
  const PackedRange tile = packed_range(a.format, a.count);
  if (WarpTeam::index() == 0) open_packed(a.format, tile, a.in + tile.bytes, lanes, source);
  __syncthreads();
  float* const out = a.out + tile.first;
  for (auto bucket = (std::uint32_t)WarpTeam::index(); bucket < tile.buckets;
       bucket += WarpTeam::teams)
    SLIMPI_UNROLL
  for (int j = 0; j < kLaneValues; ++j) {
    const auto i = (std::uint32_t)(WarpTeam::thread() + j * kWarpThreads);
    const std::uint32_t at = bucket * kPackedBucket + i;
    if (at >= tile.count) continue;
    const float value = packed_value(source, bucket, i);
    out[at] = added ? add(out[at], value) : value;
  }
}

// What a block of threads knows of its tile.
struct PackedShared {
  PackedSource source[kPackedSources];
  std::uint32_t lanes[kWarpsOfBlock][kWarpThreads];
  std::uint16_t levels[kWarpsOfBlock][kPackedBucket];
  std::uint16_t numbers[kMostBuckets];
  PackedHeader header;
  std::uint8_t bytes[kMostBuckets];
  std::uint16_t begin[kMostBuckets];
  bool huge[kPackedSources];
  const float* exact[kPackedSources];  // of an addend that is not encoded: the tile's first element
};

// The sum in double of an element whose float sum is not finite, where a source is huge. Not with
// the arguments: a pointer to them would be a generic one.
SLIMPI_DEVICE_RARE float huge_sum(const PackedShared& shared, int sources, std::uint32_t bucket,
                                  std::uint32_t i) {
  double exact = 0, slack = 0;
  SLIMPI_ROLLED
  for (int s = 0; s < sources; ++s) {
    const float* const floats = shared.exact[s];
    const double one = (double)(floats != nullptr ? floats[bucket * kPackedBucket + i]
                                                  : packed_value(shared.source[s], bucket, i));
    exact = s == 0 ? one : exact + one;
    if (shared.huge[s]) slack += slack_of(shared.source[s].header);
  }
  return saturated_sum(exact, slack);
}

// Value i of a bucket of the sum; 0 behind the end of the tile.
SLIMPI_DEVICE float packed_total(const PackedSumArguments& a, const PackedRange& tile,
                                 const PackedShared& shared, bool any_huge, std::uint32_t bucket,
                                 std::uint32_t i) {
  if (bucket * kPackedBucket + i >= tile.count) return 0;
  const std::uint64_t element = tile.first + bucket * kPackedBucket + i;
  float sum = 0;
  SLIMPI_ROLLED
  for (int s = 0; s < a.addend_count; ++s) {
    const float one = a.addends[s].encoded == nullptr ? a.addends[s].exact[element]
                                                      : packed_value(shared.source[s], bucket, i);
    sum = s == 0 ? one : add(sum, one);
  }
  return any_huge && !is_finite(sum) ? huge_sum(shared, a.addend_count, bucket, i) : sum;
}

// The number of the scale of a bucket, from the values of all lanes.
SLIMPI_DEVICE std::uint16_t number_of(const float (&values)[kLaneValues]) {
  BucketExtremes found = {INT32_MIN, 0};
  SLIMPI_UNROLL
  for (int j = 0; j < kLaneValues; ++j) include(found, bits_of(values[j]));
  return scale_number(
      {__reduce_max_sync(kAllLanes, found.high), __reduce_max_sync(kAllLanes, found.low)});
}

// From the numbers of the scales, all that describes the tile. By the whole block of threads; the
// search is made by the first warp.
SLIMPI_DEVICE void make_plan(const Format& format, const PackedRange& tile, PackedShared& shared) {
  __syncthreads();
  if (WarpTeam::index() == 0) {
    const LaneBuckets mine = lane_buckets(tile.buckets);
    const std::uint32_t room = packed_units(format, tile.count);
    std::uint32_t most = 0, total = 0;
    for (std::uint32_t bucket = mine.first; bucket < mine.end; ++bucket) {
      const std::uint32_t number = finite_number(shared.numbers[bucket]);
      most = most > number ? most : number;
    }
    const std::uint32_t base = base_for(__reduce_max_sync(kAllLanes, most));
    for (std::uint32_t bucket = mine.first; bucket < mine.end; ++bucket)
      shared.bytes[bucket] = scale_byte(shared.numbers[bucket], base);
    const auto units_with = [&](std::int32_t detail) {
      std::uint32_t units = 0;
      for (std::uint32_t bucket = mine.first; bucket < mine.end; ++bucket)
        units += (std::uint32_t)width_of(shared.bytes[bucket], detail);
      return units;
    };
    const std::int32_t detail = most_detail([&](std::int32_t tried) {
      sum_before(units_with(tried), shared.lanes[0], &total);
      return total <= room;
    });
    const std::uint32_t coarse = units_with(detail), fine = units_with(detail + 1);
    sum_before(coarse, shared.lanes[0], &total);
    std::uint32_t more = 0, finer = tile.buckets;
    std::uint32_t units = total + sum_before(fine - coarse, shared.lanes[0], &more);
    for (std::uint32_t bucket = mine.first; bucket < mine.end; ++bucket) {
      const std::uint8_t byte = shared.bytes[bucket];
      units += (std::uint32_t)(width_of(byte, detail + 1) - width_of(byte, detail));
      if (units > room && bucket < finer) finer = bucket;
    }
    const PackedHeader header = {(std::uint16_t)base, (std::int16_t)detail,
                                 (std::uint16_t)__reduce_min_sync(kAllLanes, finer), 0};
    find_begins(header, shared.bytes, tile.buckets, shared.lanes[0], shared.begin);
    if (WarpTeam::thread() == 0) shared.header = header;
  }
  __syncthreads();
}

// Writes the levels of a bucket, which are in shared memory of the warp.
SLIMPI_DEVICE void write_levels(const std::uint16_t* levels, std::int32_t width,
                                std::uint8_t* out) {
  const auto lane = (std::uint32_t)WarpTeam::thread();
  std::uint32_t shift = 0;
  SLIMPI_ROLLED
  for (; width - (std::int32_t)shift >= 8; shift += 8, out += kPackedBucket)
    for (std::uint32_t i = lane; i < kPackedBucket; i += kWarpThreads)
      out[i] = (std::uint8_t)(levels[i] >> shift);
  SLIMPI_ROLLED
  for (std::uint32_t bits = 4; bits != 0; bits /= 2) {
    if (((std::uint32_t)width & bits) == 0) continue;
    const std::uint32_t bytes = kPackedBucket * bits / 8;
    if (lane < bytes) {
      std::uint32_t byte = 0;
      SLIMPI_ROLLED
      for (std::uint32_t k = 0; k < 8 / bits; ++k)
        byte |= (levels[lane + k * bytes] >> shift & ((1u << bits) - 1)) << k * bits;
      out[lane] = (std::uint8_t)byte;
    }
    out += bytes;
    shift += bits;
  }
}

// Rounds and writes a bucket of values `from`, which the tile's own pointers give.
SLIMPI_DEVICE void encode_packed_bucket(const PackedSumArguments& a, const PackedRange& tile,
                                        PackedShared& shared, const float* from,
                                        std::uint32_t bucket) {
  const std::uint8_t byte = shared.bytes[bucket];
  const std::int32_t width = width_at(shared.header, shared.bytes, bucket);
  std::uint16_t* const levels = shared.levels[WarpTeam::index()];
  PackedScale scale = {};
  if (width != 0) {
    const std::uint32_t base = shared.header.base, number = byte & 0x7fu;
    scale = packed_scale(step_of(base, number, width), inverse_step_of(base, number, width), byte,
                         width);
  }
  SLIMPI_UNROLL
  for (int j = 0; j < kLaneValues; ++j) {
    const auto i = (std::uint32_t)(WarpTeam::thread() + j * kWarpThreads);
    const std::uint32_t at = bucket * kPackedBucket + i;
    const std::uint64_t element = tile.first + at;
    const float value = at < tile.count ? from[element] : 0.0f;
    float decoded = byte == kNonfiniteBucket ? nan_value() : 0.0f;
    if (width != 0) {
      levels[i] = (std::uint16_t)nearest_level(scale, value);
      decoded = level_value(scale, levels[i]);
    }
    if (at >= tile.count) continue;
    if (a.residual != nullptr && width != 0) a.residual[element] = value - decoded;
    if (a.result != nullptr) a.result[element] = decoded;
  }
  __syncwarp();
  std::uint8_t* const units = (std::uint8_t*)a.out + tile.bytes + packed_header_bytes(tile.count);
  write_levels(levels, width, units + shared.begin[bucket] * kUnitBytes);
  __syncwarp();
}

// What describes the tile, and the zeros behind its buckets.
SLIMPI_DEVICE void write_description(const Format& format, const PackedRange& tile,
                                     const PackedShared& shared, std::byte* at) {
  const PackedHeader& header = shared.header;
  const auto header_bytes = (std::uint32_t)packed_header_bytes(tile.count);
  auto* const words = (std::uint32_t*)at;
  auto* const out = (std::uint8_t*)at;
  if (threadIdx.x == 0) {
    words[0] = header.base | (std::uint32_t)(std::uint16_t)header.detail << 16;
    words[1] = header.finer;
  }
  for (std::uint32_t i = threadIdx.x; i < header_bytes - sizeof header; i += kThreads)
    out[sizeof header + i] = i < tile.buckets ? shared.bytes[i] : (std::uint8_t)0;
  const std::uint32_t last = tile.buckets - 1;
  const std::uint32_t units =
      shared.begin[last] + (std::uint32_t)width_at(header, shared.bytes, last);
  const std::uint32_t end = header_bytes + units * kUnitBytes;
  const auto bytes = (std::uint32_t)packed_tile_bytes(format, tile.count);
  for (std::uint32_t i = end + threadIdx.x; i < bytes; i += kThreads) out[i] = 0;
}

// Adds to the sums in `from` what error feedback adds of the residuals, whose place they take.
SLIMPI_DEVICE void add_residuals(const PackedSumArguments& a, const PackedRange& tile,
                                 PackedShared& shared, const float* from) {
  for (auto bucket = (std::uint32_t)WarpTeam::index(); bucket < tile.buckets;
       bucket += WarpTeam::teams) {
    const std::uint16_t number = shared.numbers[bucket];
    const std::int32_t width = width_at(shared.header, shared.bytes, bucket);
    const float step = step_of(shared.header.base, shared.bytes[bucket] & 0x7fu, width);
    const float limit = residual_limit(step, greatest_of_number(number));
    float values[kLaneValues];
    SLIMPI_UNROLL
    for (int j = 0; j < kLaneValues; ++j) {
      const std::uint32_t at =
          bucket * kPackedBucket + (std::uint32_t)(WarpTeam::thread() + j * kWarpThreads);
      const std::uint64_t element = tile.first + at;
      values[j] = 0;
      if (at >= tile.count || number == kNonfinite) continue;
      values[j] = from[element] + clamp_residual(a.residual[element], limit);
      a.residual[element] = values[j];
    }
    const std::uint16_t summed = number_of(values);
    __syncwarp();  // all lanes have read the number before
    if (WarpTeam::thread() == 0 && number != kNonfinite) shared.numbers[bucket] = summed;
  }
}

// The sum of the addends to `result`, unless that is null; encoded to `out`, unless that is null.
SLIMPI_DEVICE void packed_sum(const PackedSumArguments& a) {
  __shared__ PackedShared shared;
  const PackedRange tile = packed_range(a.format, a.count);
  for (int s = WarpTeam::index(); s < a.addend_count; s += WarpTeam::teams) {
    const std::byte* const encoded = a.addends[s].encoded;
    if (encoded != nullptr)
      open_packed(a.format, tile, encoded + tile.bytes, shared.lanes[WarpTeam::index()],
                  shared.source[s]);
    __syncwarp();
    if (WarpTeam::thread() != 0) continue;
    shared.huge[s] =
        encoded != nullptr && !shared.source[s].damaged && is_huge(shared.source[s].header);
    shared.exact[s] = encoded != nullptr ? nullptr : a.addends[s].exact + tile.first;
  }
  __syncthreads();
  bool any_huge = false;
  for (int s = 0; s < a.addend_count; ++s) any_huge = any_huge || shared.huge[s];
  for (auto bucket = (std::uint32_t)WarpTeam::index(); bucket < tile.buckets;
       bucket += WarpTeam::teams) {
    float values[kLaneValues];
    SLIMPI_UNROLL
    for (int j = 0; j < kLaneValues; ++j) {
      const auto i = (std::uint32_t)(WarpTeam::thread() + j * kWarpThreads);
      values[j] = packed_total(a, tile, shared, any_huge, bucket, i);
      const std::uint32_t at = bucket * kPackedBucket + i;
      if (a.result != nullptr && at < tile.count) a.result[tile.first + at] = values[j];
    }
    const std::uint16_t number = number_of(values);
    if (WarpTeam::thread() == 0) shared.numbers[bucket] = number;
  }
  if (a.out == nullptr) return;
  const float* from = a.result != nullptr ? a.result : a.addends[0].exact;
  make_plan(a.format, tile, shared);
  if (a.residual != nullptr) {
    add_residuals(a, tile, shared, from);
    make_plan(a.format, tile, shared);
    from = a.residual;
  }
  for (auto bucket = (std::uint32_t)WarpTeam::index(); bucket < tile.buckets;
       bucket += WarpTeam::teams)
    encode_packed_bucket(a, tile, shared, from, bucket);
  write_description(a.format, tile, shared, a.out + tile.bytes);
}

SLIMPI_KERNEL(packed_sum, PackedSumArguments, 4, packed_sum)
SLIMPI_KERNEL(packed_decode, PackedDecodeArguments, 4, packed_decode<false>)
SLIMPI_KERNEL(packed_decode_add, PackedDecodeArguments, 4, packed_decode<true>)

}  // namespace slimpi::kernels::cuda
