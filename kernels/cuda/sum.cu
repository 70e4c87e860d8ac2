// SPDX-License-Identifier: BSD-3-Clause
// Implements Kernels::sum_encode for quantized segments: reads several segments and writes one.
#include "kernels/cuda/sources.h"

namespace slimpi::kernels::cuda {

// Sets `values` to this thread's part of the sum of its team's tile.
template <typename Team>
SLIMPI_DEVICE void total_values(const SumArguments& a, const Tile& tile,
                                SharedSources (&sources)[Team::teams],
                                float (&values)[Team::values]) {
  prefetch_sources<Team>(a, tile);
  open_sources<Team>(a, sources);
  sum_values<Team>(a, tile, sources[Team::index()], values);
}

template <typename Team>
SLIMPI_DEVICE void store_values(const Tile& tile, const float (&values)[Team::values], float* to) {
  float* const mine = to + Team::thread();
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j)
    if (has<Team>(tile, j)) mine[j * Team::threads] = values[j];
}

template <typename Team, bool stochastic>
SLIMPI_DEVICE void sum_encode(const SumArguments& a) {
  __shared__ SharedSources sources[Team::teams];
  __shared__ EncodeShared<Team, stochastic> shared[Team::teams];
  const Tile tile = tile_of<Team>(a.payload);
  const std::uint64_t first = first_of(a.payload, tile);
  float values[Team::values];
  total_values<Team>(a, tile, sources, values);
  float* const residual = at_or_null(a.residual, first);
  if (residual != nullptr)
    add_residual<Team>(a.payload, tile, residual, values, shared[Team::index()]);
  encode_buckets<Team, stochastic>(a.payload, a.random, tile, values, {residual, a.result + first},
                                   shared, a.out);
}

// sum_encode without `out`: writes only the sum.
template <typename Team>
SLIMPI_DEVICE void sum_exact(const SumArguments& a) {
  __shared__ SharedSources sources[Team::teams];
  const Tile tile = tile_of<Team>(a.payload);
  float values[Team::values];
  total_values<Team>(a, tile, sources, values);
  store_values<Team>(tile, values, a.result + first_of(a.payload, tile));
}

// The first pass over buckets too long for one block of threads: writes the sum and collects its
// extremes.
SLIMPI_DEVICE void sum_extremes(const SumArguments& a) {
  __shared__ SharedSources sources[BlockTeam::teams];
  __shared__ Extremes partial[kWarpsOfBlock];
  const Tile tile = tile_of<BlockTeam>(a.payload);
  float values[BlockTeam::values];
  total_values<BlockTeam>(a, tile, sources, values);
  store_values<BlockTeam>(tile, values, a.result + first_of(a.payload, tile));
  const Extremes found = over_team<BlockTeam>(extremes_of<BlockTeam>(tile, values), partial);
  if (threadIdx.x == 0) add_extremes(found, header_in(a.payload, tile, a.out));
}

SLIMPI_KERNEL(sum_warp_nearest, SumArguments, 4, (sum_encode<WarpTeam, false>))
SLIMPI_KERNEL(sum_warp_stochastic, SumArguments, 3, (sum_encode<WarpTeam, true>))
SLIMPI_KERNEL(sum_block_nearest, SumArguments, 4, (sum_encode<BlockTeam, false>))
SLIMPI_KERNEL(sum_block_stochastic, SumArguments, 4, (sum_encode<BlockTeam, true>))
SLIMPI_KERNEL(sum_warp_exact, SumArguments, 3, sum_exact<WarpTeam>)
SLIMPI_KERNEL(sum_block_exact, SumArguments, 5, sum_exact<BlockTeam>)
SLIMPI_KERNEL(sum_extremes, SumArguments, 5, sum_extremes)

}  // namespace slimpi::kernels::cuda
