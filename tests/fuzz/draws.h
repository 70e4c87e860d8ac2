// SPDX-License-Identifier: BSD-3-Clause
// Random choices, the same on every rank: a stream of numbers for each step of a seed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fuzz {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t step) : state_(mix(seed) ^ mix(step + 0x5eed)) {}

  std::uint64_t number() { return mix(state_ += 0x9e3779b97f4a7c15ull); }
  std::size_t below(std::size_t end) { return std::size_t(number() % end); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <typename T>
  T among(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  // Returns a number for each `index` of `number`, without a place in the stream, for choices that
  // differ by rank.
  static std::uint64_t of(std::uint64_t number, std::uint64_t index) {
    return mix(number ^ mix(index + 1));
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace fuzz
