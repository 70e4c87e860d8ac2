// SPDX-License-Identifier: BSD-3-Clause
// The random streams of stochastic rounding. The generator, Philox4x32-10 (Salmon, Moraes, Dror and
// Shaw, Parallel random numbers: as easy as 1, 2, 3, SC11), has no state: number n of a stream is
// word n % 4 of the block whose counter is n / 4, so any range of a stream can be computed on its
// own.
#pragma once
#include "kernels/format.h"

namespace slimpi::kernels {

struct Block {
  std::uint32_t word[4];
};

constexpr int kPhiloxRounds = 10;
constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9, kPhiloxWeyl1 = 0xBB67AE85;

SLIMPI_HD Block philox(Block counter, std::uint32_t key0, std::uint32_t key1) {
  std::uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t first = (std::uint64_t)kPhiloxMultiplier0 * a;
    const std::uint64_t second = (std::uint64_t)kPhiloxMultiplier1 * c;
    a = (std::uint32_t)(second >> 32) ^ b ^ key0;
    b = (std::uint32_t)second;
    c = (std::uint32_t)(first >> 32) ^ d ^ key1;
    d = (std::uint32_t)first;
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return {{a, b, c, d}};
}

// Returns block `number` of a stream. No two streams share a block as long as calls and block
// numbers are below 2^48.
SLIMPI_HD Block random_block(const RandomStream& random, std::uint64_t number) {
  const Block counter = {
      {(std::uint32_t)number,
       (std::uint32_t)(number >> 32 & 0xffff) | (std::uint32_t)(random.call >> 32 & 0xffff) << 16,
       random.rank, (std::uint32_t)random.call}};
  return philox(counter, (std::uint32_t)random.seed, (std::uint32_t)(random.seed >> 32));
}

// Returns a random word as a float in [0, 1): its upper 24 bits times 2^-24, which is exact and
// never 1.
SLIMPI_HD float uniform(std::uint32_t word) {
  return (float)(std::int32_t)(word >> 8) * 0x1p-24f;
}

}  // namespace slimpi::kernels
