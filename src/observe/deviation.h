// SPDX-License-Identifier: BSD-3-Clause
// How far a sum is from the exact one. Included by the library and by slimpi-bench.
#pragma once
#include <cmath>
#include <cstdint>

namespace slimpi {

struct Deviation {
  double error = 0, exact = 0;  // sums of squares
  // Values of the exact sum that are not 0; of these: 0 in the result; of the other sign there.
  std::uint64_t nonzero = 0, zeros = 0, wrong_signs = 0;

  // The squared error, normalized by the squared L2 norm of the exact sum; of zeros not normalized.
  double vnmse() const { return exact > 0 ? error / exact : error; }
  double relative_l2() const { return std::sqrt(vnmse()); }
};

// Exact: float or double.
template <typename Exact>
Deviation deviation_of(const float* result, const Exact* exact, std::uint64_t count) {
  Deviation all;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = double(exact[i]), got = double(result[i]), off = got - value;
    all.error += off * off;
    all.exact += value * value;
    all.nonzero += value != 0;
    all.zeros += value != 0 && got == 0;
    all.wrong_signs += (value < 0 && got > 0) || (value > 0 && got < 0);
  }
  return all;
}

}  // namespace slimpi
