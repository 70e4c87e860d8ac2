// SPDX-License-Identifier: BSD-3-Clause
// Decodes quantized segments: Kernels::decode and decode_add.
#include "kernels/cuda/bucket.h"

namespace slimpi::kernels::cuda {

template <typename Team, bool added, bool wide>
SLIMPI_DEVICE void write_values(const SharedGrid& shared, const Tile& tile,
                                const std::uint8_t (&levels)[Team::values], float* out) {
  const Scale<float> scale = shared.narrow_grid;
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    const auto i = (std::uint32_t)(Team::thread() + j * Team::threads);
    const float value = wide ? wide_value(shared, levels[j]) : level_value(scale, levels[j]);
    if (i < tile.count) out[i] = added ? add(out[i], value) : value;
  }
}

// The levels do not depend on the header, so they are loaded before the header has arrived.
template <typename Team, bool added>
SLIMPI_DEVICE void decode(const DecodeArguments& a) {
  __shared__ SharedGrid shared[Team::teams];
  const Tile tile = tile_of<Team>(a.payload);
  if (tile.count == 0) return;
  SharedGrid& scale = shared[Team::index()];
  const std::uint32_t* const words = levels_in(a.payload, tile, a.in);
  float* const out = a.out + first_of(a.payload, tile);
  Header header = {};
  if (Team::thread() == 0) header = read_header(header_in(a.payload, tile, a.in));
  std::uint8_t levels[Team::values];
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    const auto i = (std::uint32_t)(Team::thread() + j * Team::threads);
    levels[j] = i < tile.count ? level_at(words, a.payload.format.bits, i) : (std::uint8_t)0;
  }
  if (Team::thread() == 0)
    open_grid(header, a.payload.format.bits, a.payload.format.stochastic, scale);
  Team::sync();
  if (scale.marked)
    for (std::uint32_t i = (std::uint32_t)Team::thread(); i < tile.count; i += Team::threads)
      out[i] = nan_value();
  else if (scale.wide)
    write_values<Team, added, true>(scale, tile, levels, out);
  else
    write_values<Team, added, false>(scale, tile, levels, out);
}

SLIMPI_KERNEL(decode_warp, DecodeArguments, 4, (decode<WarpTeam, false>))
SLIMPI_KERNEL(decode_block, DecodeArguments, 5, (decode<BlockTeam, false>))
SLIMPI_KERNEL(decode_add_warp, DecodeArguments, 4, (decode<WarpTeam, true>))
SLIMPI_KERNEL(decode_add_block, DecodeArguments, 5, (decode<BlockTeam, true>))

}  // namespace slimpi::kernels::cuda
