// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes the levels of a bucket of a packed tile by one warp. kernels/math/packed.h says
// how the bits of the levels are laid out.
#pragma once
#include "kernels/cuda/team.h"
#include "kernels/math/packed.h"

namespace slimpi::kernels::cuda {

constexpr int kLaneValues = (int)kPackedBucket / kWarpThreads;

// The two levels of this lane in a bucket: `lane` and `lane` + 32. levels_of() reads them from the
// encoded bucket at `in`.
struct PackedPair {
  std::uint32_t level[kLaneValues];
};
SLIMPI_DEVICE PackedPair levels_of(const std::uint8_t* in, std::int32_t width) {
  const auto lane = (std::uint32_t)WarpTeam::thread();
  std::uint32_t low = 0, high = 0, shift = 0;
  if (width >= 8) {
    low = in[lane];
    high = in[lane + 32];
    in += kPackedBucket;
    shift = 8;
    if ((width & 16) != 0) {
      low |= (std::uint32_t)in[lane] << 8;
      high |= (std::uint32_t)in[lane + 32] << 8;
    }
  }
  if ((width & 4) != 0) {
    const std::uint32_t byte = in[lane];
    low |= (byte & 15) << shift;
    high |= (byte >> 4) << shift;
    in += kPackedBucket / 2;
    shift += 4;
  }
  if ((width & 2) != 0) {
    const std::uint32_t byte = (std::uint32_t)in[lane % 16] >> lane / 16 * 2;
    low |= (byte & 3) << shift;
    high |= (byte >> 4 & 3) << shift;
    in += kPackedBucket / 4;
    shift += 2;
  }
  if ((width & 1) != 0) {
    const std::uint32_t byte = (std::uint32_t)in[lane % 8] >> lane / 8;
    low |= (byte & 1) << shift;
    high |= (byte >> 4 & 1) << shift;
  }
  return {{low, high}};
}

// Writes the levels of a bucket, two per lane, to shared memory.
SLIMPI_DEVICE void put_levels(const PackedPair& levels, std::int32_t width, std::uint8_t* out) {
  const auto lane = (std::uint32_t)WarpTeam::thread();
  std::uint32_t low = levels.level[0], high = levels.level[1];
  if (width >= 8) {
    SLIMPI_ROLLED
    for (int byte = 0; byte < width / 8; ++byte) {
      out[lane] = (std::uint8_t)low;
      out[lane + 32] = (std::uint8_t)high;
      out += kPackedBucket;
      low >>= 8;
      high >>= 8;
    }
  }
  if ((width & 4) != 0) {
    out[lane] = (std::uint8_t)((low & 15) | (high & 15) << 4);
    out += kPackedBucket / 2;
    low >>= 4;
    high >>= 4;
  }
  if ((width & 2) != 0) {
    std::uint32_t bits = ((low & 3) | (high & 3) << 4) << lane / 16 * 2;
    bits |= __shfl_xor_sync(kAllLanes, bits, 16);
    if (lane < 16) out[lane] = (std::uint8_t)bits;
    out += kPackedBucket / 4;
    low >>= 2;
    high >>= 2;
  }
  if ((width & 1) != 0) {
    std::uint32_t bits = ((low & 1) | (high & 1) << 4) << lane / 8;
    bits |= __shfl_xor_sync(kAllLanes, bits, 16);
    bits |= __shfl_xor_sync(kAllLanes, bits, 8);
    if (lane < 8) out[lane] = (std::uint8_t)bits;
  }
}

}  // namespace slimpi::kernels::cuda
