// SPDX-License-Identifier: BSD-3-Clause
// Kernels::encode, sum_encode, decode and decode_add of packed segments. Encoding takes three
// kernels, because the widths of a tile depend on all its values: packed_sum (sums and their scale
// numbers) or, for a single buffer, packed_numbers (scale numbers only), then packed_plan (the
// header of each tile), then packed_encode (levels). Error feedback inserts packed_feedback (adds
// residuals, new scale numbers) and a second packed_plan before packed_encode.
#include "kernels/cuda/packed.h"

#include <type_traits>

#include "kernels/math/feedback.h"
#include "kernels/math/quantizer.h"

namespace slimpi::kernels::cuda {

template <bool added>
SLIMPI_DEVICE void packed_decode(const PackedDecodeArguments& a) {
  __shared__ PackedSource source;
  __shared__ std::uint32_t words[kWarpsOfBlock][kWarpWords];
  const PackedSlice slice = packed_slice(a.shape);
  const std::byte* const in = a.in + slice.bytes;
  float* const out = a.out + slice.first;
  PackedValues values, before;
  if constexpr (added) load_packed(slice, out, before);
  for (int part = WarpTeam::index(); part < parts_of(slice); part += WarpTeam::teams)
    open_packed(slice, in, part, source);
  __syncthreads();
  decode_packed(slice, source, in, words[WarpTeam::index()], values);
  if constexpr (added)
    for_packed([&](int b, int j) { values[b][j] = add(before[b][j], values[b][j]); });
  add_marks(slice, source, in, values);
  store_packed(slice, values, out);
}

// The sources of a sum, in memory shared by a block of threads.
struct PackedShared {
  PackedSource source[kPackedSources];
  std::uint32_t words[kWarpsOfBlock][kWarpWords];
  bool huge[kPackedSources];
  const float* exact[kPackedSources];      // an addend of floats: its tile; else null
  const std::byte* units[kPackedSources];  // encoded: the slice's first unit; null if damaged
  const std::byte* tile[kPackedSources];   // encoded: the tile's first unit
};

// Returns the sum of value j of this lane in a bucket of the slice, computed in double. Called
// where the float sum is not finite and a source is huge (has values above 2^100). The function
// takes no pointer to the kernel's arguments, because nvcc would turn it into a generic pointer.
SLIMPI_DEVICE_RARE float huge_sum(const PackedShared& shared, int sources, std::uint32_t bucket,
                                  std::uint32_t element, int j) {
  double exact = 0, slack = 0;
  SLIMPI_ROLLED
  for (int s = 0; s < sources; ++s) {
    float one = nan_value();
    if (shared.exact[s] != nullptr) {
      one = shared.exact[s][element];
    } else if (shared.units[s] != nullptr) {
      const PackedBucket from = shared.source[s].bucket[bucket];
      const auto* const in = (const std::uint8_t*)shared.units[s] + from.begin * kUnitBytes;
      const PackedPair levels = levels_of(in, from.width);
      one = packed_value(from, j == 0 ? levels.level[0] : levels.level[1]);
      one = with_mark(from, shared.tile[s], one, j);
    }
    exact = s == 0 ? (double)one : exact + (double)one;
    if (shared.huge[s]) slack += slack_of(shared.source[s].header);
  }
  return saturated_sum(exact, slack);
}

// Recomputes the sums that are not finite only because huge values were rounded.
SLIMPI_DEVICE void correct_huge_sums(const PackedSumArguments& a, const PackedSlice& slice,
                                     PackedShared& shared, PackedValues& sums) {
  const int s = (int)threadIdx.x;
  if (s < a.addend_count) {
    const std::byte* const encoded = a.addends[s].encoded;
    const std::uint32_t units = encoded == nullptr ? 0 : opened_units(slice, shared.source[s]);
    const bool damaged = encoded != nullptr && is_damaged(slice, shared.source[s], units);
    shared.huge[s] = encoded != nullptr && !damaged && is_huge(shared.source[s].header);
    shared.exact[s] = encoded != nullptr ? nullptr : a.addends[s].exact + slice.first;
    shared.units[s] = encoded == nullptr || damaged
                          ? nullptr
                          : units_of(slice, encoded + slice.bytes) + (units & 0xffff) * kUnitBytes;
    shared.tile[s] = units_of(slice, encoded + slice.bytes);
  }
  __syncthreads();
  bool any = false;
  for (int i = 0; i < a.addend_count; ++i) any = any || shared.huge[i];
  if (!any) return;
  for_packed([&](int b, int j) {
    if (!has_packed(slice, b, j) || is_finite(sums[b][j])) return;
    const auto bucket = (std::uint32_t)(WarpTeam::index() * kWarpBuckets + b);
    sums[b][j] = huge_sum(
        shared, a.addend_count, bucket,
        lane_element(slice) + (std::uint32_t)(b * (int)kPackedBucket + j * kWarpThreads), j);
  });
}

// Adds the addends. Writes the sum to `result` and its scale numbers to `out`, each unless it is
// null.
SLIMPI_DEVICE void packed_sum(const PackedSumArguments& a) {
  __shared__ PackedShared shared;
  const PackedSlice slice = packed_slice(a.shape);
  const int parts = parts_of(slice);
  for (int i = WarpTeam::index(); i < a.addend_count * parts; i += WarpTeam::teams) {
    const std::byte* const encoded = a.addends[i / parts].encoded;
    if (encoded != nullptr)
      open_packed(slice, encoded + slice.bytes, i % parts, shared.source[i / parts]);
  }
  __syncthreads();
  PackedValues sums = {};
  bool encoded_sources = false;
  SLIMPI_ROLLED
  for (int s = 0; s < a.addend_count; ++s) {
    PackedValues ones;
    const std::byte* const encoded = a.addends[s].encoded;
    if (encoded == nullptr) {
      load_packed(slice, a.addends[s].exact + slice.first, ones);
    } else {
      encoded_sources = true;
      decode_packed(slice, shared.source[s], encoded + slice.bytes, shared.words[WarpTeam::index()],
                    ones);
    }
    if (s == 0)
      for_packed([&](int b, int j) { sums[b][j] = ones[b][j]; });
    else
      for_packed([&](int b, int j) { sums[b][j] = sums[b][j] + ones[b][j]; });
    if (encoded != nullptr) add_marks(slice, shared.source[s], encoded + slice.bytes, sums);
  }
  if (a.addend_count > 1) for_packed([&](int b, int j) { sums[b][j] = canonical(sums[b][j]); });
  if (encoded_sources) correct_huge_sums(a, slice, shared, sums);
  if (a.result != nullptr) store_packed(slice, sums, a.result + slice.first);
  if (a.out == nullptr) return;
  for_packed([&](int b, int j) {
    if (!has_packed(slice, b, j)) sums[b][j] = 0;
  });
  write_numbers(slice, sums, numbers_in(slice, a.out));
}

// Writes the scale numbers of a single addend of floats to `out`. Replaces packed_sum() if there is
// nothing to add.
SLIMPI_DEVICE void packed_numbers(const PackedSumArguments& a) {
  const PackedSlice slice = packed_slice(a.shape);
  PackedValues values;
  load_packed(slice, a.addends[0].exact + slice.first, values);
  write_numbers(slice, values, numbers_in(slice, a.out));
}

// The number of buckets that one thread of packed_plan handles, enough for the longest tile.
constexpr int kPlanBuckets = (int)kMostBuckets / kThreads;
static_assert(kPlanBuckets == 4);  // the bytes of a word

// Returns the sum of `mine` over all threads of a block, and sets *before, unless null, to the sum
// over the threads before this one. `partial` is shared memory that no thread is still reading.
SLIMPI_DEVICE std::uint32_t sum_over_block(std::uint32_t mine, std::uint32_t* partial,
                                           std::uint32_t* before) {
  const std::uint32_t sum = __reduce_add_sync(kAllLanes, mine);
  if (WarpTeam::thread() == 0) partial[WarpTeam::index()] = sum;
  __syncthreads();
  std::uint32_t all = 0, warps_before = 0;
  SLIMPI_UNROLL
  for (int warp = 0; warp < kWarpsOfBlock; ++warp) {
    all += partial[warp];
    if (warp < WarpTeam::index()) warps_before += partial[warp];
  }
  if (before != nullptr) *before = warps_before + sum_before(mine);
  return all;
}

// Turns the scale numbers of a tile into its header, bucket bytes and marks bytes. Each thread
// handles kPlanBuckets consecutive buckets.
SLIMPI_DEVICE void packed_plan(const PackedSumArguments& a) {
  __shared__ std::uint32_t partial[2][kWarpsOfBlock];
  __shared__ std::uint32_t greatest[kWarpsOfBlock], first_coarse[kWarpsOfBlock];
  const PackedSlice slice = packed_tile(a.shape, blockIdx.x);
  const PackedTile& tile = slice.tile;
  const std::uint32_t first = threadIdx.x * kPlanBuckets;
  const std::uint16_t* const numbers = numbers_in(slice, a.out);
  std::uint16_t number[kPlanBuckets];
  std::uint32_t most = 0;
  SLIMPI_UNROLL
  for (std::uint32_t k = 0; k < kPlanBuckets; ++k)
    number[k] = first + k < tile.buckets ? numbers[first + k] : (std::uint16_t)0;
  std::uint32_t mark_bytes = 0, marks = 0;  // marks: units + (buckets with marks << 16)
  SLIMPI_UNROLL
  for (int k = 0; k < kPlanBuckets; ++k) {
    const std::uint32_t finite = finite_number(number[k]), marked = marks_of(number[k]);
    most = most > finite ? most : finite;
    mark_bytes |= marked << 8 * k;
    marks += marked == 0 ? 0 : 0x10000 + (marked & 3);
  }
  most = __reduce_max_sync(kAllLanes, most);
  if (WarpTeam::thread() == 0) greatest[WarpTeam::index()] = most;
  __syncthreads();
  SLIMPI_UNROLL
  for (int warp = 0; warp < kWarpsOfBlock; ++warp)
    most = most > greatest[warp] ? most : greatest[warp];
  int turn = 0;  // the two arrays of partial sums are used alternately
  marks = sum_over_block(marks, partial[turn++ % 2], nullptr);
  marks = marks == 0 ? 0 : units_of_marks(tile.buckets) + (marks & 0xffff);
  if (marks > tile.units) marks = 0;
  const std::uint32_t room = tile.units - marks;
  const std::uint32_t base = base_for(most);
  std::uint32_t bytes = 0;
  std::int32_t half[kPlanBuckets];
  SLIMPI_UNROLL
  for (int k = 0; k < kPlanBuckets; ++k) {
    const std::uint8_t byte = scale_byte(number[k], base, marks != 0);
    bytes |= (std::uint32_t)byte << 8 * k;
    half[k] = half_scale(byte);
  }
  const auto width = [&](int k, std::int32_t detail) {
    return (std::uint32_t)width_of_half(half[k], detail);
  };
  const auto units_with = [&](std::int32_t detail) {
    std::uint32_t units = 0;
    SLIMPI_UNROLL
    for (int k = 0; k < kPlanBuckets; ++k) units += width(k, detail);
    return units;
  };
  const std::int32_t detail = most_detail([&](std::int32_t tried) {
    return sum_over_block(units_with(tried), partial[turn++ % 2], nullptr) <= room;
  });
  const std::uint32_t coarse = units_with(detail);
  std::uint32_t before = 0;
  std::uint32_t units = sum_over_block(coarse, partial[turn++ % 2], nullptr);
  sum_over_block(units_with(detail + 1) - coarse, partial[turn++ % 2], &before);
  units += before;
  std::uint32_t finer = tile.buckets;
  SLIMPI_UNROLL
  for (int k = kPlanBuckets - 1; k >= 0; --k) {
    std::uint32_t with = units;
    SLIMPI_UNROLL
    for (int other = 0; other <= k; ++other)
      with += width(other, detail + 1) - width(other, detail);
    if (with > room && first + (std::uint32_t)k < finer) finer = first + (std::uint32_t)k;
  }
  finer = __reduce_min_sync(kAllLanes, finer);
  if (WarpTeam::thread() == 0) first_coarse[WarpTeam::index()] = finer;
  __syncthreads();
  auto* const words = (std::uint32_t*)(a.out + slice.bytes);
  if (first < tile.buckets) words[sizeof(PackedHeader) / 4 + threadIdx.x] = bytes;
  auto* const marked =
      (std::uint32_t*)(units_of(slice, a.out + slice.bytes) + room * kUnitBytes) + threadIdx.x;
  if (marks != 0 && threadIdx.x < units_of_marks(tile.buckets) * kUnitWords) *marked = mark_bytes;
  if (threadIdx.x != 0) return;
  SLIMPI_UNROLL
  for (int warp = 0; warp < kWarpsOfBlock; ++warp)
    finer = finer < first_coarse[warp] ? finer : first_coarse[warp];
  words[0] = base | (std::uint32_t)(std::uint16_t)detail << 16;
  words[1] = finer | marks << 16;
}

// Returns the encoder's input: the sums in `result` or, if that is null, the single addend.
SLIMPI_DEVICE const float* packed_input(const PackedSumArguments& a) {
  return a.result != nullptr ? a.result : a.addends[0].exact;
}

// Replaces the residuals by the sums of the values and the clamped residuals, and the scale numbers
// by those of the sums.
SLIMPI_DEVICE void packed_feedback(const PackedSumArguments& a) {
  const PackedSlice slice = packed_slice(a.shape);
  float* const residuals = a.residual + slice.first;
  PackedValues values, more;
  load_packed(slice, packed_input(a) + slice.first, values);
  load_packed(slice, residuals, more);
  const std::byte* const described = a.out + slice.bytes;
  const PackedHeader header = read_packed_header(described);
  SLIMPI_UNROLL
  for (int b = 0; b < kWarpBuckets; ++b) {
    const std::uint32_t bucket = bucket_of_warp(slice, b);
    if (bucket >= slice.tile.buckets) break;
    const std::uint16_t number = number_of(slice, values, b);
    const std::uint8_t byte = ((const std::uint8_t*)described)[sizeof header + bucket];
    const float step = step_of(header.base, byte & 0x7fu, width_at(header, byte, bucket));
    const float limit = residual_limit(header, step, number);
    const bool finite = marks_of(number) == 0;
    SLIMPI_UNROLL
    for (int j = 0; j < kLaneValues; ++j) {
      const bool has = finite && has_packed(slice, b, j);
      more[b][j] = has ? values[b][j] + clamp_residual(more[b][j], limit) : more[b][j];
      values[b][j] = has ? more[b][j] : values[b][j];
    }
  }
  store_packed(slice, more, residuals);
  write_numbers(slice, values, numbers_in(slice, a.out));
}

// Writes the units of a bucket's marks, collected from the values of all lanes.
SLIMPI_DEVICE_RARE void write_marks(PackedMarks marks, float low, float high) {
  const int lane = WarpTeam::thread();
  SLIMPI_ROLLED
  for (std::uint32_t bit = 0; bit < (marks.byte & 3); ++bit) {
    auto* const words = (std::uint32_t*)marks.units + bit * kUnitWords;
    const std::uint32_t first = mark_bit(marks.byte, mark_of(low), bit) << lane;
    const std::uint32_t second = mark_bit(marks.byte, mark_of(high), bit) << lane;
    words[0] = __reduce_add_sync(kAllLanes, first);  // all lanes write the same value
    words[1] = __reduce_add_sync(kAllLanes, second);
  }
}

// Rounds the values of a slice, once packed_plan has written the header of its tile. Writes the
// slice's levels, the outputs, and this slice's share of the zeros that follow the tile's levels.
SLIMPI_DEVICE void packed_encode(const PackedSumArguments& a) {
  __shared__ PackedSource source;
  __shared__ float inverse_steps[kSliceBuckets];
  __shared__ std::uint32_t words[kWarpsOfBlock][kWarpWords];
  const PackedSlice slice = packed_slice(a.shape);
  std::byte* const out = a.out + slice.bytes;
  PackedValues values;
  const float* const from = a.residual != nullptr ? a.residual : packed_input(a);
  load_packed(slice, from + slice.first, values);
  const int parts = parts_of(slice);
  for (int part = WarpTeam::index(); part < parts; part += WarpTeam::teams) {
    open_packed(slice, out, part, source);
    if (part < parts - 1) continue;
    __syncwarp();
    const PackedBucket& mine = source.bucket[WarpTeam::thread()];
    inverse_steps[WarpTeam::thread()] =
        mine.width == 0 ? 0 : inverse_step_of(source.header.base, mine.byte & 0x7fu, mine.width);
  }
  __syncthreads();
  const std::uint32_t units = opened_units(slice, source), marks = source.header.marks;
  if (marks != 0) {
    find_marks(slice, out, source);
    SLIMPI_UNROLL
    for (int b = 0; b < kWarpBuckets; ++b) {
      const PackedBucket& bucket = source.bucket[WarpTeam::index() * kWarpBuckets + b];
      if (bucket.marks == 0) continue;
      const float* const input = packed_input(a) + slice.first + lane_element(slice);
      SLIMPI_UNROLL
      for (int j = 0; j < kLaneValues; ++j)
        values[b][j] =
            has_packed(slice, b, j) ? input[kPackedBucket * b + kWarpThreads * j] : 0.0f;
      write_marks(marks_in(bucket, units_of(slice, out)), values[b][0], values[b][1]);
    }
  }
  const PackedWords range = words_of_warp(source);
  std::uint32_t* const shared = words[WarpTeam::index()];
  float* const residual =
      a.residual == nullptr ? nullptr : a.residual + slice.first + lane_element(slice);
  const auto put_buckets = [&](auto with_all) {
    constexpr bool kWithAll = decltype(with_all)::value;  // with the code for marks and residuals
    SLIMPI_UNROLL
    for (int b = 0; b < kWarpBuckets; ++b) {
      const int number = WarpTeam::index() * kWarpBuckets + b;
      const PackedBucket bucket = source.bucket[number];
      const PackedScale scale = {bucket.step, inverse_steps[number], bucket.origin,
                                 kRoundingBits + (1 << bucket.width) - 1};
      const bool marked = kWithAll && bucket.marks != 0;
      PackedPair levels;
      SLIMPI_UNROLL
      for (int j = 0; j < kLaneValues; ++j) {
        const float value = values[b][j];
        const bool finite = !marked || is_finite(value);
        levels.level[j] = (std::uint16_t)nearest_level(scale, finite ? value : 0.0f);
        if (!kWithAll && a.result == nullptr) continue;
        values[b][j] = packed_value(bucket, bucket.width == 0 ? 0 : levels.level[j]);
        if (!kWithAll) continue;
        if (residual != nullptr && bucket.width != 0 && !marked && has_packed(slice, b, j))
          residual[kPackedBucket * b + kWarpThreads * j] = value - values[b][j];
        if (!finite) values[b][j] = marked_value(mark_of(value));
      }
      put_levels(levels, bucket.width, (std::uint8_t*)shared + byte_in(range, bucket));
    }
  };
  // Without marks and residuals, which is the common case, run code with less than half the
  // instructions.
  if (marks == 0 && residual == nullptr)
    put_buckets(std::false_type());
  else
    put_buckets(std::true_type());
  if (a.result != nullptr) store_packed(slice, values, a.result + slice.first);
  __syncwarp();
  auto* const all = (std::uint32_t*)units_of(slice, out);
  std::uint32_t* const mine = all + ((units & 0xffff) * kUnitWords + range.first);
  SLIMPI_ROLLED
  for (auto w = (std::uint32_t)WarpTeam::thread(); w < range.count; w += kWarpThreads)
    mine[w] = shared[w];
  const std::uint32_t all_words = (slice.tile.bytes - slice.tile.header_bytes) / 4;
  const std::uint32_t mark_words = marks * kUnitWords;
  const std::uint32_t slices = (slice.tile.count + kPackedSlice - 1) / kPackedSlice;
  SLIMPI_ROLLED
  for (std::uint32_t w = (units >> 16) * kUnitWords + slice.number * kThreads + threadIdx.x;
       w < all_words; w += slices * kThreads)
    if (w - (slice.tile.units * kUnitWords - mark_words) >= mark_words) all[w] = 0;
}

SLIMPI_KERNEL(packed_sum, PackedSumArguments, 5, packed_sum)
SLIMPI_KERNEL(packed_numbers, PackedSumArguments, 5, packed_numbers)
SLIMPI_KERNEL(packed_plan, PackedSumArguments, 4, packed_plan)
SLIMPI_KERNEL(packed_feedback, PackedSumArguments, 5, packed_feedback)
SLIMPI_KERNEL(packed_encode, PackedSumArguments, 5, packed_encode)
SLIMPI_KERNEL(packed_decode, PackedDecodeArguments, 6, packed_decode<false>)
SLIMPI_KERNEL(packed_decode_add, PackedDecodeArguments, 6, packed_decode<true>)

}  // namespace slimpi::kernels::cuda
