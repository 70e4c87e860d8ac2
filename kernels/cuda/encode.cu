// SPDX-License-Identifier: BSD-3-Clause
// Encodes quantized segments: Kernels::encode, and the passes that long buckets need.
#include "kernels/cuda/bucket.h"

namespace slimpi::kernels::cuda {

template <typename Team, bool stochastic>
SLIMPI_DEVICE void encode(const EncodeArguments& a) {
  __shared__ EncodeShared<Team, stochastic> shared[Team::teams];
  const Tile tile = tile_of<Team>(a.payload);
  if (tile.count == 0) return;
  const std::uint64_t first = first_of(a.payload, tile);
  float* const residual = at_or_null(a.residual, first);
  float values[Team::values];
  load_sums<Team>(tile, a.in + first, residual, values);
  encode_bucket<Team, stochastic>(a.payload, a.random, tile, values, {residual, nullptr},
                                  shared[Team::index()], a.out);
}

// One thread per bucket.
SLIMPI_DEVICE std::uint32_t* bucket_of_thread(const EncodeArguments& a) {
  const std::uint64_t bucket = (std::uint64_t)blockIdx.x * kThreads + threadIdx.x;
  if (bucket * a.payload.bucket >= a.payload.count) return nullptr;
  return (std::uint32_t*)(a.out + bucket * a.payload.bucket_bytes);
}

SLIMPI_DEVICE void start_extremes(const EncodeArguments& a) {
  std::uint32_t* const at = bucket_of_thread(a);
  if (at == nullptr) return;
  const Extremes none = no_extremes();
  at[0] = (std::uint32_t)none.signed_high;
  at[1] = none.unsigned_high;
  at[2] = none.unsigned_low;
}

SLIMPI_DEVICE void encode_extremes(const EncodeArguments& a) {
  __shared__ Extremes partial[kWarpsOfBlock];
  const Tile tile = tile_of<BlockTeam>(a.payload);
  const std::uint64_t first = first_of(a.payload, tile);
  float values[BlockTeam::values];
  load_sums<BlockTeam>(tile, a.in + first, at_or_null(a.residual, first), values);
  const Extremes found = over_team<BlockTeam>(extremes_of<BlockTeam>(tile, values), partial);
  if (threadIdx.x == 0) add_extremes(found, header_in(a.payload, tile, a.out));
}

SLIMPI_DEVICE void end_extremes(const EncodeArguments& a) {
  std::uint32_t* const at = bucket_of_thread(a);
  if (at == nullptr) return;
  write_header(header_of({(std::int32_t)at[0], at[1], at[2]}), at);
}

template <bool stochastic>
SLIMPI_DEVICE void pack(const PackArguments& a) {
  __shared__ EncodeShared<BlockTeam, stochastic> shared;
  const Tile tile = tile_of<BlockTeam>(a.payload);
  const std::uint64_t first = first_of(a.payload, tile);
  float values[BlockTeam::values];
  load_sums<BlockTeam>(tile, a.in + first, at_or_null(a.added, first), values);
  if (threadIdx.x == 0)
    open_scale(read_header(header_in(a.payload, tile, a.out)), a.payload.format.bits, stochastic,
               shared.scale);
  __syncthreads();
  encode_tile<BlockTeam, stochastic>(a.payload, a.random, tile, values,
                                     {at_or_null(a.residual, first), at_or_null(a.decoded, first)},
                                     shared, levels_in(a.payload, tile, a.out));
}

SLIMPI_KERNEL(encode_warp_nearest, EncodeArguments, 4, (encode<WarpTeam, false>))
SLIMPI_KERNEL(encode_warp_stochastic, EncodeArguments, 4, (encode<WarpTeam, true>))
SLIMPI_KERNEL(encode_block_nearest, EncodeArguments, 4, (encode<BlockTeam, false>))
SLIMPI_KERNEL(encode_block_stochastic, EncodeArguments, 4, (encode<BlockTeam, true>))
SLIMPI_KERNEL(start_extremes, EncodeArguments, 4, start_extremes)
SLIMPI_KERNEL(encode_extremes, EncodeArguments, 8, encode_extremes)
SLIMPI_KERNEL(end_extremes, EncodeArguments, 4, end_extremes)
SLIMPI_KERNEL(pack_nearest, PackArguments, 5, pack<false>)
SLIMPI_KERNEL(pack_stochastic, PackArguments, 5, pack<true>)

}  // namespace slimpi::kernels::cuda
