// SPDX-License-Identifier: BSD-3-Clause
// The random streams of stochastic rounding: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel
// random numbers: as easy as 1, 2, 3, SC11), a generator without state. Number n of a stream is
// word n % 4 of the block whose counter is n / 4, so any part of a stream can be drawn anywhere.
#pragma once
#include "kernels/format.h"

namespace slimpi::kernels {

struct Block {
  std::uint32_t word[4];
};

// One round of ten, and the rounds from `round` on; the recursion unrolls them for the vectorizer.
template <int round = 0>
SLIMPI_HD Block philox(Block counter, std::uint32_t key0, std::uint32_t key1) {
  if constexpr (round == 10) {
    return counter;
  } else {
    const std::uint64_t first = 0xD2511F53ull * counter.word[0];
    const std::uint64_t second = 0xCD9E8D57ull * counter.word[2];
    const Block mixed = {
        {(std::uint32_t)(second >> 32) ^ counter.word[1] ^ key0, (std::uint32_t)second,
         (std::uint32_t)(first >> 32) ^ counter.word[3] ^ key1, (std::uint32_t)first}};
    return philox<round + 1>(mixed, key0 + 0x9E3779B9, key1 + 0xBB67AE85);
  }
}

// Block `number` of a stream. Streams are apart while calls and block numbers stay below 2^48.
SLIMPI_HD Block draw_block(const Draw& draw, std::uint64_t number) {
  const Block counter = {
      {(std::uint32_t)number,
       (std::uint32_t)(number >> 32 & 0xffff) | (std::uint32_t)(draw.call >> 32 & 0xffff) << 16,
       draw.rank, (std::uint32_t)draw.call}};
  return philox(counter, (std::uint32_t)draw.seed, (std::uint32_t)(draw.seed >> 32));
}

// A word as a number in [0, 1), never 1: 24 bits, exact.
SLIMPI_HD float uniform(std::uint32_t word) {
  return (float)(std::int32_t)(word >> 8) * 0x1p-24f;
}

}  // namespace slimpi::kernels
