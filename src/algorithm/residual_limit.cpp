// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <cmath>

namespace slimpi::algorithm {

// No square of a float, nor a sum of them, overflows or underflows in double.
float residual_factor(double values, double residual) {
  if (!std::isfinite(values) || !std::isfinite(residual)) return 0;
  const double limit = kResidualNorms * kResidualNorms * values;
  return residual <= limit ? 1.0f : float(std::sqrt(limit / residual));
}

}  // namespace slimpi::algorithm
