// SPDX-License-Identifier: BSD-3-Clause
// A number for the bytes of a result: FNV-1a, word by word.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

inline std::uint64_t digest(const float* values, std::size_t count) {
  std::uint64_t hash = 14695981039346656037ull;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  }
  return hash;
}
