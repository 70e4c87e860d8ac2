// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>

namespace slimpi {

// Returns the least multiple of `to` that is not less than `value`.
constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace slimpi
