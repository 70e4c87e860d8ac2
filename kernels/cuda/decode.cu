// SPDX-License-Identifier: BSD-3-Clause
// Quantized pieces back to floats: Kernels::decode and decode_add.
#include "kernels/cuda/bucket.h"

namespace slimpi::kernels::cuda {

template <typename Team, bool added, typename Real>
SLIMPI_DEVICE void write_values(const Grid<Real>& shared_grid, const Tile& tile,
                                const std::uint8_t (&levels)[Team::values],
                                const float (&old)[Team::values], float* out) {
  const Grid<Real> grid = shared_grid;
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    const auto i = (std::uint32_t)(Team::thread() + j * Team::threads);
    const float value = level_value(grid, levels[j]);
    if (i < tile.count) out[i] = added ? add(old[j], value) : value;
  }
}

// Everything that does not depend on the header is asked for before it is waited for.
template <typename Team, bool added>
SLIMPI_DEVICE void decode(const DecodeArguments& a) {
  __shared__ SharedGrid shared[Team::teams];
  const Tile tile = tile_of<Team>(a.piece);
  if (tile.count == 0) return;
  SharedGrid& grid = shared[Team::index()];
  const std::uint32_t* const words = levels_in(a.piece, tile, a.in);
  float* const out = a.out + first_of(a.piece, tile);
  const bool leads = Team::thread() < kWarpThreads;
  Header header = {};
  if (leads) header = read_header(header_in(a.piece, tile, a.in));
  std::uint8_t levels[Team::values];
  float old[Team::values];
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    const auto i = (std::uint32_t)(Team::thread() + j * Team::threads);
    levels[j] = i < tile.count ? level_at(words, a.piece.format.bits, i) : (std::uint8_t)0;
    old[j] = added && i < tile.count ? out[i] : 0.0f;
  }
  if (leads) {
    SharedGrid opened;
    open_grid(header, a.piece.format, opened);
    if (Team::thread() == 0) grid = opened;
  }
  Team::sync();
  if (grid.marked)
    for (std::uint32_t i = (std::uint32_t)Team::thread(); i < tile.count; i += Team::threads)
      out[i] = nan_value();
  else if (grid.wide)
    write_values<Team, added>(grid.wide_grid, tile, levels, old, out);
  else
    write_values<Team, added>(grid.narrow_grid, tile, levels, old, out);
}

SLIMPI_KERNEL(decode_warp, DecodeArguments, (decode<WarpTeam, false>))
SLIMPI_KERNEL(decode_block, DecodeArguments, (decode<BlockTeam, false>))
SLIMPI_KERNEL(decode_add_warp, DecodeArguments, (decode<WarpTeam, true>))
SLIMPI_KERNEL(decode_add_block, DecodeArguments, (decode<BlockTeam, true>))

}  // namespace slimpi::kernels::cuda
