// SPDX-License-Identifier: BSD-3-Clause
// Random numbers for tests. A seed gives the same numbers on every machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "tests/kernels/data.h"

namespace slimpi::test {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : seed_(mixed(seed)) {}
  std::uint64_t next() { return mixed(seed_ + drawn_++); }
  // Returns a number from 0 to below - 1.
  std::size_t below(std::size_t below) { return std::size_t(next() % below); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <typename Value>
  Value of(std::initializer_list<Value> values) {
    return *(values.begin() + below(values.size()));
  }

 private:
  std::uint64_t seed_, drawn_ = 0;
};

}  // namespace slimpi::test
