// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/distance.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <vector>

#include "tests/helper/cmocka_cxx.h"

using slimpi::algorithm::Distance;

namespace {

constexpr std::uint64_t kNear = 300, kFar = 1000;  // nanoseconds

void one_slow_look_is_an_interruption(void**) {
  Distance distance(2, 0);
  assert_false(distance.far());
  for (int i = 0; i < 10; ++i) {
    distance.record(kFar);
    assert_false(distance.far());
    distance.record(kNear);
    assert_false(distance.far());
  }
}

void two_in_a_row_change_it(void**) {
  Distance distance(2, 1);
  distance.record(kFar);
  distance.record(kFar);
  assert_true(distance.far());
  distance.record(kNear);
  assert_true(distance.far());
  distance.record(kFar);
  assert_true(distance.far());
  distance.record(kNear);
  distance.record(kNear);
  assert_false(distance.far());
}

void one_neighbour_that_is_far_is_enough(void**) {
  for (int odd = 0; odd < 4; ++odd) {
    Distance distance(5, 2);
    for (int look = 0; look < 2 * 4; ++look) distance.record(look % 4 == odd ? kFar : kNear);
    assert_true(distance.far());
    for (int look = 0; look < 2 * 4; ++look) distance.record(kNear);
    assert_false(distance.far());
  }
}

void everybody_looks_at_another_one(void**) {
  constexpr int kRanks = 6;
  std::vector<Distance> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back(kRanks, rank);
  std::vector<std::set<int>> seen(kRanks);
  for (int look = 0; look < kRanks - 1; ++look) {
    std::set<int> targets;
    for (int rank = 0; rank < kRanks; ++rank) {
      const int target = ranks[std::size_t(rank)].target();
      assert_in_range(target, 0, kRanks - 1);
      assert_int_not_equal(target, rank);
      assert_true(targets.insert(target).second);
      assert_true(seen[std::size_t(rank)].insert(target).second);
      ranks[std::size_t(rank)].record(kNear);
    }
  }
}

void first_often_then_seldom(void**) {
  Distance distance(4, 0);
  for (int look = 0; look < 2 * 3; ++look) assert_true(distance.due(1));
  int looks = 0;
  for (int meeting = 0; meeting < 800; ++meeting) looks += distance.due(64 << 10);
  assert_int_equal(looks, 100);
  for (int meeting = 0; meeting < 10; ++meeting) assert_true(distance.due(1 << 20));
}

void a_rank_alone_looks_at_nobody(void**) {
  Distance distance(1, 0);
  for (int meeting = 0; meeting < 1000; ++meeting) assert_false(distance.due(1 << 20));
  assert_false(distance.far());
}

// In each look other lines, and none twice.
void marks_are_a_chain_that_changes(void**) {
  struct alignas(64) Marks {
    std::byte bytes[Distance::kMarkBytes];
  };
  std::set<std::set<std::size_t>> seen;
  Distance distance(2, 0);
  for (int look = 0; look < 64; ++look) {
    assert_true(distance.due(1 << 20));
    Marks marks;
    std::fill(std::begin(marks.bytes), std::end(marks.bytes), std::byte(0xFF));
    distance.write_marks(marks.bytes);
    std::set<std::size_t> lines, named;
    for (std::size_t at = 0; at < Distance::kMarkBytes; at += 8) {
      std::uint64_t next = 0;
      memcpy(&next, marks.bytes + at, sizeof next);
      if (next == UINT64_MAX) continue;
      assert_int_equal(at % 64, 0);
      assert_in_range(next, 0, Distance::kMarkBytes / 64 - 1);
      lines.insert(at / 64);
      named.insert(next);
    }
    assert_int_equal(lines.size(), 8);
    assert_int_equal(named.size(), 8);
    std::vector<std::size_t> begins;  // one that no other names
    std::set_difference(lines.begin(), lines.end(), named.begin(), named.end(),
                        std::back_inserter(begins));
    assert_int_equal(begins.size(), 1);
    assert_true(seen.insert(lines).second);
    distance.look(marks.bytes);
    assert_int_equal(distance.target(), 1);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(one_slow_look_is_an_interruption),
      cmocka_unit_test(two_in_a_row_change_it),
      cmocka_unit_test(one_neighbour_that_is_far_is_enough),
      cmocka_unit_test(everybody_looks_at_another_one),
      cmocka_unit_test(first_often_then_seldom),
      cmocka_unit_test(a_rank_alone_looks_at_nobody),
      cmocka_unit_test(marks_are_a_chain_that_changes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
