// SPDX-License-Identifier: BSD-3-Clause
// The inputs of a sum on the host, called sources: segments in any codec, or plain floats. Opens,
// decodes and adds them, and encodes tiles in a value codec. Included by loops.cpp alone.
#pragma once
#include <cstring>

#include "kernels/cpu/buckets.h"
#include "kernels/cpu/packed.h"
#include "kernels/cpu/values.h"

namespace slimpi::kernels {
namespace {

// Returns how many elements a kernel processes per iteration: a bucket of a quantized segment, a
// tile of any other.
std::size_t segment_elements(const Format& format, std::size_t count) {
  if (format.codec == Codec::packed) return format.bucket;
  return format.codec == Codec::quantized ? bucket_elements(format, count) : kTile;
}

// Encodes a tile of `in` + the clamped residual with a value codec. An element whose encoded value
// is not finite keeps its residual. `residual` and `decoded` may be null; `decoded` may be `in`.
void encode_plain(Codec codec, const float* in, float* residual, float* decoded, std::size_t n,
                  TileScratch& scratch, std::byte* out) {
  float *const summed = scratch.summed, *const back = scratch.back;
  const float* from = in;
  if (residual != nullptr) {
    add_residual(codec, in, residual, n, summed);
    from = summed;
  }
  if (codec == Codec::float32) {
    std::memcpy(out, from, n * sizeof(float));
  } else {
    encode_values(codec, from, n, out);
  }
  if (residual == nullptr && decoded == nullptr) return;
  const float* decoded_tile = from;
  if (codec != Codec::float32) {
    decode_values(codec, out, 0, n, back);
    decoded_tile = back;
  }
  if (residual != nullptr)
    for (std::size_t i = 0; i < n; ++i) {
      const float old = residual[i];
      residual[i] = is_finite(decoded_tile[i]) ? from[i] - decoded_tile[i] : old;
    }
  if (decoded != nullptr && decoded != decoded_tile)
    std::memcpy(decoded, decoded_tile, n * sizeof(float));
}

// An input of a sum: floats, or a bucket or tile of an encoded segment.
struct Source {
  Codec codec;
  const std::byte* data;  // the floats, or the encoded range
  Bucket bucket;
  PackedTile tile;
};

struct Scratch : TileScratch {
  PackedPlan plan;
  Source sources[kMaxAddends + 1];
  float tile[kTile];
};

// Borrows a Scratch for the duration of one kernel. Up to four are kept for later calls until the
// process ends, so that calls need not allocate.
class BorrowedScratch {
 public:
  BorrowedScratch() {
    for (Scratch*& place : g_spare)
      if (scratch_ == nullptr) scratch_ = __atomic_exchange_n(&place, nullptr, __ATOMIC_ACQUIRE);
    if (scratch_ == nullptr) scratch_ = new Scratch;
  }
  ~BorrowedScratch() {
    for (Scratch*& place : g_spare)
      if (scratch_ != nullptr) scratch_ = __atomic_exchange_n(&place, scratch_, __ATOMIC_ACQ_REL);
    delete scratch_;
  }
  BorrowedScratch(const BorrowedScratch&) = delete;
  BorrowedScratch& operator=(const BorrowedScratch&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  static constinit inline Scratch* g_spare[4] = {};
  Scratch* scratch_ = nullptr;
};

// Prepare a source for reading: open_source() for n elements encoded at `data`, open_exact() for
// floats.
SLIMPI_HD void open_source(const Format& format, const std::byte* data, std::size_t n,
                           TileScratch& scratch, Source& source) {
  source.codec = format.codec;
  source.data = data;
  if (format.codec == Codec::quantized) open_bucket(format, data, n, scratch, source.bucket);
  if (format.codec == Codec::packed) open_packed(format, data, n, source.tile);
}
SLIMPI_HD void open_exact(const float* data, Source& source) {
  source.codec = Codec::float32;
  source.data = (const std::byte*)data;
}

SLIMPI_HD const float* floats_of(const Source& source, std::size_t first) {
  return (const float*)source.data + first;
}

// Decodes elements first .. first + n - 1 of the source, at most a tile of them, to `to`.
SLIMPI_HD void read_source(const Source& source, std::size_t first, std::size_t n, float* to) {
  if (source.codec == Codec::quantized)
    read_bucket(source.bucket, first, n, to);
  else if (source.codec == Codec::packed)
    read_packed(source.tile, first, n, to);
  else if (source.codec == Codec::float32)
    std::memcpy(to, floats_of(source, first), n * sizeof(float));
  else
    decode_values(source.codec, source.data, first, n, to);
}

// to = sum + elements first .. first + n - 1 of the source. `to` may be `sum` or, if the source is
// floats, the memory of these floats.
SLIMPI_HD void add_source(const Source& source, std::size_t first, std::size_t n, const float* sum,
                          float* to) {
  if (source.codec == Codec::quantized) {
    add_bucket(source.bucket, first, n, sum, to);
  } else if (source.codec == Codec::packed) {
    add_packed(source.tile, first, n, sum, to);
  } else if (source.codec == Codec::float32) {
    add_tiles(sum, floats_of(source, first), n, to);
  } else {
    if (to != sum) std::memcpy(to, sum, n * sizeof(float));
    add_values(source.codec, source.data, first, n, to);
  }
}

// Adds like add_source(), and collects the extremes of the sums. Called for the last addend of a
// bucket that is then quantized, so the source is quantized or floats.
SLIMPI_HD void include_source(Extremes& extremes, const Source& source, std::size_t first,
                              std::size_t n, const float* sum, float* to) {
  if (source.codec == Codec::quantized)
    include_bucket(extremes, source.bucket, first, n, sum, to);
  else
    include_sum(extremes, sum, floats_of(source, first), n, to);
}

// Prefetches n elements of the source from `first` on. The range may exceed the source.
SLIMPI_HD void prefetch_next(const Source& source, std::size_t first, std::size_t n) {
  if (source.codec == Codec::quantized)
    prefetch(source.bucket.packed + first * source.bucket.bits / 8, n * source.bucket.bits / 8);
  else if (source.codec == Codec::float32)
    prefetch(floats_of(source, first), n * sizeof(float));
}

// total = the sum of the sources, each of n elements; unless `extremes` is null, it collects the
// extremes of the sums. `total` may be the memory of a source of floats. `partial` is scratch
// memory for kStep floats.
void sum_sources(const Source* sources, int source_count, std::size_t n, float* total,
                 float* partial, Extremes* extremes) {
  // If the second source is floats, swap the first two: then one pass both decodes and adds.
  const bool swapped = source_count > 1 && sources[1].codec == Codec::float32;
  const auto source = [&](int s) -> const Source& { return sources[swapped && s < 2 ? 1 - s : s]; };
  for (std::size_t i = 0; i < n; i += kStep) {
    const std::size_t step = n - i < kStep ? n - i : kStep;
    for (int s = 0; s < source_count; ++s) prefetch_next(source(s), i + step, step);
    // `total` may be a source that is still to be read, so only complete sums are written to it.
    const float* sum = partial;
    if (source(0).codec == Codec::float32)
      sum = floats_of(source(0), i);
    else
      read_source(source(0), i, step, partial);
    for (int s = 1; s < source_count; ++s) {
      const bool last = s == source_count - 1;
      float* const to = last ? total + i : partial;
      if (last && extremes != nullptr)
        include_source(*extremes, source(s), i, step, sum, to);
      else
        add_source(source(s), i, step, sum, to);
      sum = to;
    }
    if (source_count > 1) continue;
    if (extremes != nullptr) include_tile(*extremes, sum, step);
    std::memmove(total + i, sum, step * sizeof(float));
  }
}

// Returns whether a source has values near the greatest float, so that the caller must use
// sum_near_overflow(). Sets *slack to the argument of that function.
bool any_near_overflow(const Format& format, const Source* sources, int source_count,
                       double* slack) {
  bool near_overflow = false;
  *slack = 0;
  for (int s = 0; s < source_count; ++s) {
    if (const PackedTile& tile = sources[s].tile;
        sources[s].codec == Codec::packed && !tile.damaged && is_huge(tile.header)) {
      near_overflow = true;
      *slack += slack_of(tile.header);
    }
    if (sources[s].codec != Codec::quantized) continue;
    Header header;
    std::memcpy(&header, sources[s].data, sizeof header);
    if (!is_near_overflow(header)) continue;
    near_overflow = true;
    *slack += slack_of(header, format.bits, format.stochastic);
  }
  return near_overflow;
}

// Adds like sum_sources(), but passes each sum that is not finite to saturated_sum().
void sum_near_overflow(const Source* sources, int source_count, std::size_t n, double slack,
                       TileScratch& scratch, float* total) {
  float *const sum = scratch.summed, *const one = scratch.back;
  double* const exact = scratch.exact;
  for (std::size_t i = 0; i < n; i += kTile) {
    const std::size_t tile = tile_at(i, n);
    for (int s = 0; s < source_count; ++s) {
      read_source(sources[s], i, tile, one);
      for (std::size_t j = 0; j < tile; ++j) {
        sum[j] = s == 0 ? one[j] : add(sum[j], one[j]);
        exact[j] = s == 0 ? (double)one[j] : exact[j] + (double)one[j];
      }
    }
    for (std::size_t j = 0; j < tile; ++j)
      total[i + j] = is_finite(sum[j]) ? sum[j] : saturated_sum(exact[j], slack);
  }
}

}  // namespace
}  // namespace slimpi::kernels
