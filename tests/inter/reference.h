// SPDX-License-Identifier: BSD-3-Clause
// The reference of an exchange, computed rank by rank without messages, segments or schedules.
#pragma once
#include <string>
#include <vector>

#include "tests/inter/run.h"

namespace slimpi::test {

// One rank's arrays, of the shard's length.
struct Values {
  std::vector<float> source, out, residual;
  std::vector<float> totals;  // of its own chunk
  bool in_place = false;
  const float* in() const { return in_place ? out.data() : source.data(); }
};

// The arrays that a rank starts with; `source` holds its input even in place.
Values first_values(const Case& one, int me);

// The members that a member exchanges with in a neighbor exchange.
std::vector<int> peers_of(const Case& one, int me);

// Compares the ranks' arrays with the reference and returns the first difference, or "". `rank_of`
// gives the rank of a member, which stochastic rounding depends on.
std::string compare(const Case& one, std::uint64_t seed, std::uint64_t call, int (*rank_of)(int),
                    const std::vector<Values>& got);

}  // namespace slimpi::test
