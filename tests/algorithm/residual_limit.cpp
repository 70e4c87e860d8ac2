// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/residual_limit.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "tests/helper/cmocka_cxx.h"

namespace {

using slimpi::algorithm::kResidualNorms;
using slimpi::algorithm::residual_factor;

constexpr double kMost = kResidualNorms * kResidualNorms;  // of the squares

void a_short_residual_is_used_whole(void**) {
  assert_true(residual_factor(2, 0) == 1);
  assert_true(residual_factor(2, 2 * kMost) == 1);
  assert_true(residual_factor(0, 0) == 1);
}

void a_long_one_is_made_as_long_as_allowed(void**) {
  assert_true(residual_factor(2, 2 * kMost * 16) == 0.25f);
  // The squares of the least float and of the greatest.
  const double least = 0x1p-298, greatest = 0x1p256;
  const double factor = double(residual_factor(least, greatest));
  assert_true(factor == 0 || factor * factor * greatest <= least * kMost * 1.000001);
}

void nothing_is_used_beside_zeros(void**) {
  assert_true(residual_factor(0, 1e-30) == 0);
}

void nothing_is_used_where_a_value_is_not_finite(void**) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double bad : {infinity, nan}) {
    assert_true(residual_factor(bad, 1) == 0);
    assert_true(residual_factor(1, bad) == 0);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_short_residual_is_used_whole),
      cmocka_unit_test(a_long_one_is_made_as_long_as_allowed),
      cmocka_unit_test(nothing_is_used_beside_zeros),
      cmocka_unit_test(nothing_is_used_where_a_value_is_not_finite),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
