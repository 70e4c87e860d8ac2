// SPDX-License-Identifier: BSD-3-Clause
// Inputs for kernel tests, made with integers so that every compiler and GPU makes the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"

namespace slimpi::test {

// Mixes 64 bits well (the finalizer of SplitMix64).
inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// Bell-shaped around 0, of deviation about 0.6, exact in a float: the sum of four 16-bit numbers.
inline float bell(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t bits = mixed(seed * 0x100000001b3u + i);
  std::int32_t sum = -2 * 65535;
  for (int k = 0; k < 4; ++k) sum += (std::int32_t)(bits >> 16 * k & 0xffff);
  return (float)sum * 0x1p-16f;
}

inline float from_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t to_bits(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Kinds of input: ordinary, with special values, tiny, huge, far from zero, and near the greatest
// float, where sums overflow.
constexpr int kKinds = 6;
inline float input(int kind, int source, std::size_t i) {
  const float value = bell((std::uint64_t)(10 + kind * 7 + source), i);
  const std::uint64_t special = mixed(i + 77 * (unsigned)source) % 701;
  switch (kind) {
    case 1:
      if (special < 40) return 0.0f;
      if (special < 80) return from_bits(0x80000000);
      if (special == 80) return from_bits(0x7f800000);
      if (special == 81) return from_bits(0xff800000);
      if (special == 82) return from_bits(0xffc12345);
      return special == 83 ? from_bits(0x7f800001) : value;
    case 2:
      return value * 1e-38f;
    case 3:
      return value * 0x1p126f;
    case 4:
      return value + 1e5f;
    case 5:
      return value * 0x1.8p127f;
    default:
      return value;
  }
}

// FNV-1a over bytes.
inline std::uint64_t hash(const void* data, std::size_t bytes) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < bytes; ++i)
    value = (value ^ ((const unsigned char*)data)[i]) * 0x100000001b3u;
  return value;
}

inline kernels::Format quantized(int bits, std::uint32_t bucket, bool stochastic = false) {
  return {kernels::Codec::quantized, (std::uint8_t)bits, stochastic, bucket};
}

inline kernels::Format packed(int half_bits, std::uint32_t tile) {
  return {kernels::Codec::packed, (std::uint8_t)half_bits, false, tile};
}

constexpr std::size_t kLengths[] = {0, 1, 7, 8, 9, 63, 64, 65, 2047, 2048, 2049, 10007};
constexpr std::uint32_t kBuckets[] = {64, 100, 2048, 0};
constexpr std::size_t kLongest = 10007;

}  // namespace slimpi::test
