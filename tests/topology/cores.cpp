// SPDX-License-Identifier: BSD-3-Clause
#include "topology/cores.h"

#include <cmath>
#include <initializer_list>
#include <vector>

#include "tests/helper/cmocka_cxx.h"

using slimpi::topology::Cores;
using slimpi::topology::enough_cores;
using slimpi::topology::quota_of;

namespace {

constexpr double kNoLimit = INFINITY;

Cores cores(std::initializer_list<int> numbers) {
  Cores result;
  for (const int number : numbers) result.add(number);
  return result;
}

void ranks_that_may_run_anywhere_need_as_many_cores(void**) {
  const Cores four = cores({0, 1, 2, 3});
  assert_true(enough_cores(std::vector<Cores>(4, four), 4, kNoLimit));
  assert_false(enough_cores(std::vector<Cores>(5, four), 5, kNoLimit));
  assert_false(enough_cores({}, 1, kNoLimit));
}

void two_ranks_bound_to_one_core_share_it(void**) {
  const Cores bound[] = {cores({0}), cores({64}), cores({64})};
  assert_false(enough_cores(bound, 3, kNoLimit));
  const Cores apart[] = {cores({0}), cores({64}), cores({4095})};
  assert_true(enough_cores(apart, 3, kNoLimit));
}

void cores_of_several_ranks_count_together(void**) {
  const Cores three_on_two[] = {cores({0, 1}), cores({0, 1}), cores({0, 1}), cores({2, 3, 4})};
  assert_false(enough_cores(three_on_two, 4, kNoLimit));
  const Cores two_on_two[] = {cores({0, 1}), cores({0, 1}), cores({2, 3, 4})};
  assert_true(enough_cores(two_on_two, 3, kNoLimit));
}

void ranks_outside_the_communicator_count(void**) {
  const Cores two = cores({0, 1});
  assert_true(enough_cores(std::vector<Cores>(2, two), 2, kNoLimit));
  assert_false(enough_cores(std::vector<Cores>(2, two), 4, kNoLimit));
  const Cores bound[] = {cores({0}), cores({1})};  // so the other two are bound elsewhere
  assert_true(enough_cores(bound, 4, kNoLimit));
}

void a_container_limits_the_time(void**) {
  const Cores eight = cores({0, 1, 2, 3, 4, 5, 6, 7});
  assert_true(enough_cores(std::vector<Cores>(2, eight), 2, quota_of("200000 100000")));
  assert_false(enough_cores(std::vector<Cores>(2, eight), 2, quota_of("150000 100000")));
  assert_true(std::isinf(quota_of("max 100000")));
  assert_true(std::isinf(quota_of("")));
}

void this_process_may_run_somewhere(void**) {
  assert_in_range(slimpi::topology::own_cores().count(), 1, Cores::kMost);
  assert_true(slimpi::topology::core_quota() > 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(ranks_that_may_run_anywhere_need_as_many_cores),
      cmocka_unit_test(two_ranks_bound_to_one_core_share_it),
      cmocka_unit_test(cores_of_several_ranks_count_together),
      cmocka_unit_test(ranks_outside_the_communicator_count),
      cmocka_unit_test(a_container_limits_the_time),
      cmocka_unit_test(this_process_may_run_somewhere),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
