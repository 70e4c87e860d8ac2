// SPDX-License-Identifier: BSD-3-Clause
// The value codec fp16. Rounds to nearest even, overflows to infinity, keeps subnormal numbers, and
// maps all NaNs to one quiet NaN. It has no branches, so that loops over it vectorize.
#pragma once
#include "kernels/math/bits.h"

namespace slimpi::kernels {

struct Fp16 {
  using Value = std::uint16_t;
};

SLIMPI_HD std::uint16_t encode_value(Fp16, float value) {
  const std::uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
  // For a normal fp16 value: rounds off 13 bits and changes the bias of the exponent. A carry out
  // of the greatest fp16 value yields the bits of infinity without a special case.
  std::uint32_t bits16 = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  // For a subnormal fp16 value the addition does the rounding, because the last bit of 0.5f has the
  // value of the least fp16 number.
  const std::uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  bits16 = magnitude < 0x38800000 ? small : bits16;
  bits16 = magnitude >= 0x47800000 ? 0x7c00 : bits16;
  bits16 |= bits >> 16 & 0x8000;
  return (std::uint16_t)(magnitude > kInfinityBits ? 0x7e00 : bits16);
}

SLIMPI_HD float decode_value(Fp16, std::uint16_t bits16) {
  const std::uint32_t magnitude = bits16 & 0x7fffu;
  const std::uint32_t shifted = magnitude << 13;
  std::uint32_t bits = shifted + (112u << 23);
  const std::uint32_t small = bits_of(float_of(shifted + (113u << 23)) - 0x1p-14f);
  bits = magnitude < 0x0400 ? small : bits;
  bits = magnitude >= 0x7c00 ? kInfinityBits : bits;
  bits |= (bits16 & 0x8000u) << 16;
  return float_of(magnitude > 0x7c00 ? kNanBits : bits);
}

// Masks the result where it is 0, because g++ copies the arithmetic that follows a choice between a
// value and a constant, and loops then compute both copies.
SLIMPI_HD float spacing(Fp16, float value) {
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffff;
  const std::uint32_t mask = magnitude < bits_of(0x1p15f) ? ~0u : 0u;
  return float_of(bits_of(float_of(magnitude) * 0x1p-10f + 0x1p-24f) & mask);
}

}  // namespace slimpi::kernels
