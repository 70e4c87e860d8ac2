// SPDX-License-Identifier: BSD-3-Clause
// Implements Kernels::encode for quantized segments. Buckets that fit into one block of threads
// take one kernel. Longer buckets take several: start_extremes, encode_extremes, with a residual
// also limit_residuals and residual_extremes, then end_extremes and pack.
#include "kernels/cuda/bucket.h"

namespace slimpi::kernels::cuda {

template <typename Team, bool stochastic>
SLIMPI_DEVICE void encode(const EncodeArguments& a) {
  __shared__ EncodeShared<Team, stochastic> shared[Team::teams];
  const Tile tile = tile_of<Team>(a.payload);
  const std::uint64_t first = first_of(a.payload, tile);
  float* const residual = at_or_null(a.residual, first);
  float values[Team::values];
  load_values<Team>(tile, a.in + first, values);
  if (residual != nullptr)
    add_residual<Team>(a.payload, tile, residual, values, shared[Team::index()]);
  encode_buckets<Team, stochastic>(a.payload, a.random, tile, values, {residual, nullptr}, shared,
                                   a.out);
}

// Returns the encoded bucket that this thread serves, or null if the thread has no bucket.
SLIMPI_DEVICE std::uint32_t* bucket_of_thread(const EncodeArguments& a) {
  const std::uint64_t bucket = (std::uint64_t)blockIdx.x * kThreads + threadIdx.x;
  if (bucket * a.payload.bucket >= a.payload.count) return nullptr;
  return (std::uint32_t*)(a.out + bucket * a.payload.bucket_bytes);
}

SLIMPI_DEVICE void start_extremes(const EncodeArguments& a) {
  std::uint32_t* const at = bucket_of_thread(a);
  if (at != nullptr) write_no_keys(at);
}

// Collects the extremes of the values, without residuals.
SLIMPI_DEVICE void encode_extremes(const EncodeArguments& a) {
  __shared__ Extremes partial[kWarpsOfBlock];
  const Tile tile = tile_of<BlockTeam>(a.payload);
  float values[BlockTeam::values];
  load_values<BlockTeam>(tile, a.in + first_of(a.payload, tile), values);
  const Extremes found = over_team<BlockTeam>(extremes_of<BlockTeam>(tile, values), partial);
  if (threadIdx.x == 0) add_extremes(found, header_in(a.payload, tile, a.out));
}

// Computes the limit of the residuals from the extremes of the values. If the bucket is not finite
// or does not keep its header, also resets the extremes, which residual_extremes() then collects
// anew.
SLIMPI_DEVICE void limit_residuals(const EncodeArguments& a) {
  std::uint32_t* const at = bucket_of_thread(a);
  if (at == nullptr) return;
  const Header header = read_keys(at);
  const float limit = residual_limit(a.payload.format, header);
  const bool keeps = keeps_header(a.payload.format, header);
  at[2] = !is_finite(header) ? kNanBits : bits_of(keeps ? -limit : limit);
  if (!is_finite(header) || !keeps) write_no_keys(at);
}

// Clamps the residuals in place, so that `pack` only has to add them, and collects the extremes of
// value + residual. A bucket that is not finite keeps its residuals.
SLIMPI_DEVICE void residual_extremes(const EncodeArguments& a) {
  __shared__ Extremes partial[kWarpsOfBlock];
  const Tile tile = tile_of<BlockTeam>(a.payload);
  const std::uint64_t first = first_of(a.payload, tile);
  std::uint32_t* const at = header_in(a.payload, tile, a.out);
  const float signed_limit = float_of(at[2]),
              limit = signed_limit < 0 ? -signed_limit : signed_limit;
  float values[BlockTeam::values], residuals[BlockTeam::values];
  load_values<BlockTeam>(tile, a.in + first, values);
  load_values<BlockTeam>(tile, a.residual + first, residuals);
  if (limit == limit) {
    float* const mine = a.residual + first + BlockTeam::thread();
    SLIMPI_UNROLL
    for (int j = 0; j < BlockTeam::values; ++j) {
      const float kept = clamp_residual(residuals[j], limit);
      if (has<BlockTeam>(tile, j)) mine[j * BlockTeam::threads] = kept;
      values[j] = values[j] + kept;
    }
  }
  const Extremes found = over_team<BlockTeam>(extremes_of<BlockTeam>(tile, values), partial);
  if (threadIdx.x == 0 && bits_of(signed_limit) >> 31 == 0) add_extremes(found, at);
}

// Writes the header of a bucket from its extremes. In an infinite bucket, which is rare, one thread
// also finds the extremes of the finite values.
SLIMPI_DEVICE void end_extremes(const EncodeArguments& a) {
  std::uint32_t* const at = bucket_of_thread(a);
  if (at == nullptr) return;
  Header header = read_keys(at);
  if (a.residual != nullptr && at[2] >> 31 == 0)
    header = header_of_sums(a.payload.format, header, float_of(at[2]));
  if (has_infinity(header)) {
    const std::uint64_t bucket = (std::uint64_t)blockIdx.x * kThreads + threadIdx.x;
    const std::uint64_t first = bucket * a.payload.bucket, left = a.payload.count - first;
    Extremes of_finite = no_extremes();
    for (std::uint64_t i = 0; i < left && i < a.payload.bucket; ++i)
      if (is_finite(a.in[first + i])) include(of_finite, bits_of(a.in[first + i]));
    header = infinite_header(header, of_finite, a.payload.format.bits);
  }
  write_header(header, at);
}

// Encodes the tiles of buckets whose headers were written by end_extremes().
template <bool stochastic>
SLIMPI_DEVICE void pack(const PackArguments& a) {
  __shared__ EncodeShared<BlockTeam, stochastic> shared;
  const Tile tile = tile_of<BlockTeam>(a.payload);
  const std::uint64_t first = first_of(a.payload, tile);
  float values[BlockTeam::values];
  load_values<BlockTeam>(tile, a.in + first, values);
  const Header header = read_header(header_in(a.payload, tile, a.out));
  if (a.added != nullptr && is_finite(header)) {
    float more[BlockTeam::values];
    load_values<BlockTeam>(tile, a.added + first, more);
    SLIMPI_UNROLL
    for (int j = 0; j < BlockTeam::values; ++j) values[j] = values[j] + more[j];
  }
  if (threadIdx.x == 0) open_scale(header, a.payload.format.bits, stochastic, shared.scale);
  __syncthreads();
  encode_tile<BlockTeam, stochastic>(a.payload, a.random, tile, values,
                                     {at_or_null(a.residual, first), at_or_null(a.decoded, first)},
                                     shared, levels_in(a.payload, tile, a.out));
}

SLIMPI_KERNEL(encode_warp_nearest, EncodeArguments, 4, (encode<WarpTeam, false>))
SLIMPI_KERNEL(encode_warp_stochastic, EncodeArguments, 4, (encode<WarpTeam, true>))
SLIMPI_KERNEL(encode_block_nearest, EncodeArguments, 5, (encode<BlockTeam, false>))
SLIMPI_KERNEL(encode_block_stochastic, EncodeArguments, 5, (encode<BlockTeam, true>))
SLIMPI_KERNEL(start_extremes, EncodeArguments, 4, start_extremes)
SLIMPI_KERNEL(encode_extremes, EncodeArguments, 8, encode_extremes)
SLIMPI_KERNEL(limit_residuals, EncodeArguments, 4, limit_residuals)
SLIMPI_KERNEL(residual_extremes, EncodeArguments, 5, residual_extremes)
SLIMPI_KERNEL(end_extremes, EncodeArguments, 4, end_extremes)
SLIMPI_KERNEL(pack_nearest, PackArguments, 5, pack<false>)
SLIMPI_KERNEL(pack_stochastic, PackArguments, 5, pack<true>)

}  // namespace slimpi::kernels::cuda
