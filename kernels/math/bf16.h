// SPDX-License-Identifier: BSD-3-Clause
// bf16: round to nearest even, overflow to infinity, subnormal numbers unchanged, any NaN as the
// one quiet NaN. Without branches, so that loops over it vectorize.
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

}  // namespace slimpi::kernels
