// SPDX-License-Identifier: BSD-3-Clause
#include "intra/node_barrier.h"

#include <iterator>
#include <set>

#include "tests/helper/base/unit_test.h"

using slimpi::intra::CacheLocality;

namespace {

constexpr std::uint64_t kNear = 300, kFar = 1000;  // nanoseconds

UNIT_TEST(one_slow_look_is_an_interruption) {
  CacheLocality distance(2, 0);
  assert_false(distance.cross_cache());
  for (int i = 0; i < 10; ++i) {
    distance.record(kFar);
    assert_false(distance.cross_cache());
    distance.record(kNear);
    assert_false(distance.cross_cache());
  }
}

UNIT_TEST(two_in_a_row_change_it) {
  CacheLocality distance(2, 1);
  distance.record(kFar);
  distance.record(kFar);
  assert_true(distance.cross_cache());
  distance.record(kNear);
  assert_true(distance.cross_cache());
  distance.record(kFar);
  assert_true(distance.cross_cache());
  distance.record(kNear);
  distance.record(kNear);
  assert_false(distance.cross_cache());
}

UNIT_TEST(one_node_local_rank_that_is_far_is_enough) {
  for (int odd = 0; odd < 4; ++odd) {
    CacheLocality distance(5, 2);
    for (int probe = 0; probe < 2 * 4; ++probe) distance.record(probe % 4 == odd ? kFar : kNear);
    assert_true(distance.cross_cache());
    for (int probe = 0; probe < 2 * 4; ++probe) distance.record(kNear);
    assert_false(distance.cross_cache());
  }
}

UNIT_TEST(everybody_looks_at_another_one) {
  constexpr int kRanks = 6;
  std::vector<CacheLocality> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back(kRanks, rank);
  std::vector<std::set<int>> seen(kRanks);
  for (int probe = 0; probe < kRanks - 1; ++probe) {
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

UNIT_TEST(first_often_then_seldom) {
  CacheLocality distance(4, 0);
  for (int probe = 0; probe < 2 * 3; ++probe) assert_true(distance.due(1));
  int looks = 0;
  for (int barrier = 0; barrier < 800; ++barrier) looks += distance.due(64 << 10);
  assert_int_equal(looks, 100);
  for (int barrier = 0; barrier < 10; ++barrier) assert_true(distance.due(1 << 20));
}

UNIT_TEST(a_rank_alone_looks_at_nobody) {
  CacheLocality distance(1, 0);
  for (int barrier = 0; barrier < 1000; ++barrier) assert_false(distance.due(1 << 20));
  assert_false(distance.cross_cache());
}

// Each look reads other cache lines, and no line twice.
UNIT_TEST(marks_are_a_chain_that_changes) {
  struct alignas(64) Marks {
    std::byte bytes[CacheLocality::kProbeBytes];
  };
  std::set<std::set<std::size_t>> seen;
  CacheLocality distance(2, 0);
  for (int probe = 0; probe < 64; ++probe) {
    assert_true(distance.due(1 << 20));
    Marks probe_lines;
    std::fill(std::begin(probe_lines.bytes), std::end(probe_lines.bytes), std::byte(0xFF));
    distance.write_probe_lines(probe_lines.bytes);
    std::set<std::size_t> lines, named;
    for (std::size_t at = 0; at < CacheLocality::kProbeBytes; at += 8) {
      std::uint64_t next = 0;
      memcpy(&next, probe_lines.bytes + at, sizeof next);
      if (next == UINT64_MAX) continue;
      assert_int_equal(at % 64, 0);
      assert_in_range(next, 0, CacheLocality::kProbeBytes / 64 - 1);
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
    distance.probe(probe_lines.bytes);
    assert_int_equal(distance.target(), 1);
  }
}

}  // namespace
