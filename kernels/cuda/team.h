// SPDX-License-Identifier: BSD-3-Clause
// A team is the threads that work on one tile: a warp or a block. A tile is a bucket, or a part of
// a long bucket. Element i of the tile is value i / threads of thread i % threads, so that every
// memory access of a warp is one contiguous range, whatever the alignment.
#pragma once
#include "kernels/cuda/kernel.h"
#include "kernels/math/bits.h"

namespace slimpi::kernels::cuda {

struct WarpTeam {
  static constexpr int threads = kWarpThreads, values = kWarpValues, warps = 1;
  static constexpr int teams = kWarpsOfBlock;  // teams of a block
  SLIMPI_DEVICE int index() { return (int)threadIdx.x / kWarpThreads; }
  SLIMPI_DEVICE int thread() { return (int)threadIdx.x % kWarpThreads; }
  SLIMPI_DEVICE void sync() { __syncwarp(); }
};

struct BlockTeam {
  static constexpr int threads = kThreads, values = kBlockValues, warps = kWarpsOfBlock;
  static constexpr int teams = 1;
  SLIMPI_DEVICE int index() { return 0; }
  SLIMPI_DEVICE int thread() { return (int)threadIdx.x; }
  SLIMPI_DEVICE void sync() { __syncthreads(); }
};

template <typename Team>
constexpr std::uint32_t kElements = Team::threads* Team::values;

// The work of a team: one tile. A team of the last block may have nothing to do.
struct Tile {
  std::uint64_t bucket;    // the bucket's number
  std::uint64_t elements;  // elements of the bucket
  std::uint64_t before;    // elements of the bucket before the tile
  std::uint32_t count;     // elements of the tile; 0: nothing to do
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

// Returns the tile of a team of this block. A team with an empty tile must also reach the barriers
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

// Returns the index of the tile's first element in the segment.
SLIMPI_DEVICE std::uint64_t first_of(const Payload& payload, const Tile& tile) {
  return tile.bucket * payload.bucket + tile.before;
}

// header_in() returns the header of the tile's bucket in the encoded segment at `at`; levels_in()
// returns the packed levels of the tile. A tile begins at a multiple of 32 elements of its bucket,
// so its levels begin with a whole word.
SLIMPI_DEVICE std::uint32_t* header_in(const Payload& payload, const Tile& tile,
                                       const std::byte* at) {
  return (std::uint32_t*)(at + tile.bucket * payload.bucket_bytes);
}
SLIMPI_DEVICE std::uint32_t* levels_in(const Payload& payload, const Tile& tile,
                                       const std::byte* at) {
  return header_in(payload, tile, at) + 2 + tile.before / 32 * payload.format.bits;
}
// Returns the number of words that `count` levels take.
SLIMPI_DEVICE std::uint32_t words_of(const Payload& payload, std::uint32_t count) {
  return (count * payload.format.bits + 31) / 32;
}

// Prefetches a tile whose floats begin at `values`. Always prefetches the floats of a full tile; if
// the tile is shorter, some of them lie behind its end.
template <typename Team>
SLIMPI_DEVICE void prefetch_rows(const float* values) {
  const int lane = Team::thread() % kWarpThreads;
  if (lane < Team::values) prefetch(values + (Team::thread() - lane) + lane * Team::threads);
}

// Returns the extremes over the lanes of a warp. Every lane gets the result.
SLIMPI_DEVICE Extremes over_warp(const Extremes& mine) {
  return {__reduce_max_sync(kAllLanes, mine.signed_high),
          __reduce_max_sync(kAllLanes, mine.unsigned_high),
          __reduce_min_sync(kAllLanes, mine.unsigned_low)};
}

// Returns the extremes over the threads of a team. Only the lanes of the first warp get the result.
// `partial` is shared memory for the extremes of each warp.
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
