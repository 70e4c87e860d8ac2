// SPDX-License-Identifier: BSD-3-Clause
// Hashes and random numbers that are the same on every machine.
#pragma once
#include <cstdint>
#include <string_view>

namespace slimpi {

// The hash FNV-1a with 64 bits, of words or of the characters of a text.
class Fnv1a {
 public:
  void add(std::uint64_t word) { value_ = (value_ ^ word) * 1099511628211ull; }
  void add(std::string_view text) {
    for (const char c : text) add(std::uint64_t(std::uint8_t(c)));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037ull;
};

inline std::uint64_t text_hash(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.value();
}

// Returns number `index` of the splitmix64 sequence that `seed` begins.
constexpr std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace slimpi
