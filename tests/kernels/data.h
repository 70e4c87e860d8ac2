// SPDX-License-Identifier: BSD-3-Clause
// Inputs for kernel tests, made with integers so that every compiler and GPU makes the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"

namespace slimpi::test {

// A good mixing of 64 bits (the finalizer of SplitMix64).
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

// FNV-1a over bytes.
inline std::uint64_t hash(const void* data, std::size_t bytes) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < bytes; ++i)
    value = (value ^ ((const unsigned char*)data)[i]) * 0x100000001b3u;
  return value;
}

inline kernels::Format quantized(int bits, std::uint32_t bucket, bool stochastic = false) {
  return {kernels::Coding::quantized, (std::uint8_t)bits, stochastic, bucket};
}

constexpr std::size_t kLengths[] = {0, 1, 7, 8, 9, 63, 64, 65, 2047, 2048, 2049, 10007};
constexpr std::uint32_t kBuckets[] = {64, 100, 2048, 0};
constexpr std::size_t kLongest = 10007;

}  // namespace slimpi::test
