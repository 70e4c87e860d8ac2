// SPDX-License-Identifier: BSD-3-Clause
// Decodes quantized segments: Kernels::decode and decode_add.
#include "kernels/cuda/bucket.h"

namespace slimpi::kernels::cuda {

// Writes the decoded values to `out`. If `added`, writes their sums with `before` instead, which
// has the old contents of `out`.
template <typename Team, bool added>
SLIMPI_DEVICE void write_values(const Scale<float>& scale, const Tile& tile,
                                const Levels<Team>& levels, const float (&before)[Team::values],
                                float* out) {
  float* const mine = out + Team::thread();
  SLIMPI_UNROLL
  for (int j = 0; j < Team::values; ++j) {
    const float value = level_value(scale, levels.at(j));
    if (has<Team>(tile, j)) mine[j * Team::threads] = added ? add(before[j], value) : value;
  }
}

// Writes the values like write_values(), for buckets that are non-finite or extended-range, which
// are rare. Reads the levels again.
template <typename Team, bool added>
SLIMPI_DEVICE_RARE void write_rare_values(const SharedScale& shared, std::uint32_t count,
                                          const std::uint32_t* words, int bits, float* out) {
  for (std::uint32_t i = (std::uint32_t)Team::thread(); i < count; i += Team::threads) {
    const float value =
        shared.nonfinite ? nan_value() : extended_value(shared, level_at(words, bits, i));
    out[i] = added ? add(out[i], value) : value;
  }
}

// Decodes a tile. Loads the levels while the header is still on its way, because their address does
// not depend on the header.
template <typename Team, bool added>
SLIMPI_DEVICE void decode(const DecodeArguments& a) {
  __shared__ SharedScale shared[Team::teams];
  const Tile tile = tile_of<Team>(a.payload);
  if (tile.count == 0) return;
  SharedScale& scale = shared[Team::index()];
  const int bits = a.payload.format.bits;
  const std::uint32_t* const words = levels_in(a.payload, tile, a.in);
  const std::uint64_t first = first_of(a.payload, tile);
  Header header = {};
  if (Team::thread() == 0) header = read_header(header_in(a.payload, tile, a.in));
  if constexpr (added) prefetch_rows<Team>(a.out + first);
  const Levels<Team> levels = load_levels<Team>(tile, words, bits);
  if (Team::thread() == 0) open_scale(header, bits, a.payload.format.stochastic, scale);
  float before[Team::values];
  if constexpr (added) load_values<Team>(tile, a.out + first, before);
  Team::sync();
  if (scale.nonfinite || scale.extended)
    write_rare_values<Team, added>(scale, tile.count, words, bits, a.out + first);
  else
    write_values<Team, added>(scale.scale_float, tile, levels, before, a.out + first);
}

SLIMPI_KERNEL(decode_warp, DecodeArguments, 4, (decode<WarpTeam, false>))
SLIMPI_KERNEL(decode_block, DecodeArguments, 6, (decode<BlockTeam, false>))
SLIMPI_KERNEL(decode_add_warp, DecodeArguments, 4, (decode<WarpTeam, true>))
SLIMPI_KERNEL(decode_add_block, DecodeArguments, 5, (decode<BlockTeam, true>))

}  // namespace slimpi::kernels::cuda
