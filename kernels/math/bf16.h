// SPDX-License-Identifier: BSD-3-Clause
// The value codec bf16. Rounds to nearest even, overflows to infinity, keeps subnormal numbers, and
// maps all NaNs to one quiet NaN. It has no branches, so that loops over it vectorize.
#pragma once
#include "kernels/math/bits.h"

namespace slimpi::kernels {

struct Bf16 {
  using Value = std::uint16_t;
};

SLIMPI_HD std::uint16_t encode_value(Bf16, float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t bits16 = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (std::uint16_t)((bits & 0x7fffffff) > kInfinityBits ? kNanBits >> 16 : bits16);
}

SLIMPI_HD float decode_value(Bf16, std::uint16_t bits16) {
  const std::uint32_t bits = (std::uint32_t)bits16 << 16;
  return float_of((bits & 0x7fffffff) > kInfinityBits ? kNanBits : bits);
}

// Masks, as for Fp16.
SLIMPI_HD float spacing(Bf16, float value) {
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffff;
  const std::uint32_t mask = magnitude < bits_of(0x1p127f) ? ~0u : 0u;
  return float_of(bits_of(float_of(magnitude) * 0x1p-7f + 0x1p-133f) & mask);
}

}  // namespace slimpi::kernels
