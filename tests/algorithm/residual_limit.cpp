// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <initializer_list>
#include <limits>

#include "tests/helper/base/unit_test.h"

namespace {

using slimpi::algorithm::kResidualNorms;
using slimpi::algorithm::residual_factor;

constexpr double kMost = kResidualNorms * kResidualNorms;  // of the squares

UNIT_TEST(a_short_residual_is_used_whole) {
  assert_true(residual_factor(2, 0) == 1);
  assert_true(residual_factor(2, 2 * kMost) == 1);
  assert_true(residual_factor(0, 0) == 1);
}

UNIT_TEST(a_long_one_is_made_as_long_as_allowed) {
  assert_true(residual_factor(2, 2 * kMost * 16) == 0.25f);
  // The squares of the least float and of the greatest.
  const double least = 0x1p-298, greatest = 0x1p256;
  const double factor = double(residual_factor(least, greatest));
  assert_true(factor == 0 || factor * factor * greatest <= least * kMost * 1.000001);
}

UNIT_TEST(nothing_is_used_beside_zeros) {
  assert_true(residual_factor(0, 1e-30) == 0);
}

UNIT_TEST(nothing_is_used_where_a_value_is_not_finite) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double bad : {infinity, nan}) {
    assert_true(residual_factor(bad, 1) == 0);
    assert_true(residual_factor(1, bad) == 0);
  }
}

}  // namespace
