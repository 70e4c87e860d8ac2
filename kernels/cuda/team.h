// SPDX-License-Identifier: BSD-3-Clause
// A team is the threads that work on one tile: a warp, or a whole block. A tile is a bucket or, if
// that is too long, a part of it. Element i of the tile is value i / threads of thread i % threads,
// so that each memory access of a warp is one contiguous range, whatever the alignment.
#pragma once
#include "kernels/cuda/kernel.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels::cuda {

struct WarpTeam {
  static constexpr int threads = kWarpThreads, values = kWarpValues, warps = 1;
  static constexpr int teams = kWarpsOfBlock;  // teams in a block
  static SLIMPI_DEVICE int index() { return (int)threadIdx.x / kWarpThreads; }
  static SLIMPI_DEVICE int thread() { return (int)threadIdx.x % kWarpThreads; }
  static SLIMPI_DEVICE void sync() { __syncwarp(); }
};

struct BlockTeam {
  static constexpr int threads = kThreads, values = kBlockValues, warps = kWarpsOfBlock;
  static constexpr int teams = 1;
  static SLIMPI_DEVICE int index() { return 0; }
  static SLIMPI_DEVICE int thread() { return (int)threadIdx.x; }
  static SLIMPI_DEVICE void sync() { __syncthreads(); }
};

template <typename Team>
constexpr std::uint32_t kElements = Team::threads* Team::values;

// The work of a team: one tile, which is empty for a team of the last block that has nothing to do.
struct Tile {
  std::uint64_t bucket;    // the number of the tile's bucket
  std::uint64_t elements;  // elements of that bucket
  std::uint64_t before;    // elements of that bucket before the tile
  std::uint32_t count;     // elements of the tile
};

// Returns whether every thread has Team::values elements.
template <typename Team>
SLIMPI_DEVICE bool is_full(const Tile& tile) {
  return tile.count == kElements<Team>;
}

// Returns whether the tile has element j of this thread.
template <typename Team>
SLIMPI_DEVICE bool has(const Tile& tile, int j) {
  return (int)tile.count - Team::thread() > j * Team::threads;
}

// Returns the tile of a team of this block. Even a team whose tile is empty must reach the barriers
// of the block.
template <typename Team>
SLIMPI_DEVICE Tile tile_of(const Payload& payload, int team = Team::index()) {
  const std::uint32_t step = blockIdx.x * Team::teams + (std::uint32_t)team;
  Tile tile = {};
  if (step >= payload.steps) return tile;
  std::uint32_t number = 0;
  tile.bucket = step;
  if (payload.tiles > 1) {
    tile.bucket = step / payload.tiles;
    number = step % payload.tiles;
  }
  const std::uint64_t left = payload.count - tile.bucket * payload.bucket;
  tile.elements = left < payload.bucket ? left : payload.bucket;
  tile.before = (std::uint64_t)number * kElements<Team>;
  if (tile.before >= tile.elements) return tile;
  const std::uint64_t rest = tile.elements - tile.before;
  tile.count = rest < kElements<Team> ? (std::uint32_t)rest : kElements<Team>;
  return tile;
}

// Returns the index, in the segment, of the tile's first element.
SLIMPI_DEVICE std::uint64_t first_of(const Payload& payload, const Tile& tile) {
  return tile.bucket * payload.bucket + tile.before;
}

// header_in() returns the header of the tile's bucket in the segment encoded at `at`, and
// levels_in() the tile's packed levels. These begin with a whole word, because a tile begins at a
// multiple of 32 elements of its bucket.
SLIMPI_DEVICE std::uint32_t* header_in(const Payload& payload, const Tile& tile,
                                       const std::byte* at) {
  return (std::uint32_t*)(at + tile.bucket * payload.bucket_bytes);
}
SLIMPI_DEVICE std::uint32_t* levels_in(const Payload& payload, const Tile& tile,
                                       const std::byte* at) {
  return header_in(payload, tile, at) + 2 + tile.before / 32 * payload.format.bits;
}
// Returns the number of 32-bit words that `count` packed levels take.
SLIMPI_DEVICE std::uint32_t words_of(const Payload& payload, std::uint32_t count) {
  return (count * payload.format.bits + 31) / 32;
}

// Prefetches the floats of a tile, which begin at `values`. Always prefetches as much as a full
// tile has; the excess lies beyond the end of a shorter one.
template <typename Team>
SLIMPI_DEVICE void prefetch_rows(const float* values) {
  const int lane = Team::thread() % kWarpThreads;
  if (lane < Team::values) prefetch(values + (Team::thread() - lane) + lane * Team::threads);
}

// Returns the extremes over all lanes of the warp, to every lane.
SLIMPI_DEVICE Extremes over_warp(const Extremes& mine) {
  return {__reduce_max_sync(kAllLanes, mine.signed_high),
          __reduce_max_sync(kAllLanes, mine.unsigned_high),
          __reduce_min_sync(kAllLanes, mine.unsigned_low)};
}

// Returns the extremes over all threads of a team, but only to the first warp. `partial` is shared
// memory for the extremes of each warp.
template <typename Team>
SLIMPI_DEVICE Extremes over_team(const Extremes& mine, Extremes* partial) {
  Extremes found = over_warp(mine);
  if (Team::warps == 1) return found;
  const int warp = Team::thread() / kWarpThreads, lane = Team::thread() % kWarpThreads;
  if (lane == 0) partial[warp] = found;
  Team::sync();
  if (warp == 0) found = over_warp(lane < Team::warps ? partial[lane] : no_extremes());
  return found;
}

}  // namespace slimpi::kernels::cuda
