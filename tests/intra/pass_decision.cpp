// SPDX-License-Identifier: BSD-3-Clause
// Tests whether the ranks of a node use NCCL, from the words that all of them published.
#include "intra/transports.h"

#include <initializer_list>

#include "tests/helper/base/unit_test.h"

using slimpi::intra::decide;
using slimpi::intra::NcclGroup;
using slimpi::intra::NodeBarrier;
using slimpi::intra::PassDecision;

namespace {

PassDecision decided(std::initializer_list<std::uint64_t> words) {
  NodeBarrier::Published joined{UINT64_MAX, 0};
  for (const std::uint64_t word : words) {
    joined.all &= word;
    joined.any |= word;
  }
  return decide(joined);
}

UNIT_TEST(ranks_that_are_alike_use_what_they_have) {
  const PassDecision linked = decided({NcclGroup::ready, NcclGroup::ready});
  assert_true(linked.nccl);
  assert_false(linked.open || linked.again);
  const PassDecision host = decided({NcclGroup::unavailable, NcclGroup::unavailable});
  assert_false(host.nccl || host.open || host.again);
}

UNIT_TEST(nccl_is_opened_if_all_can) {
  const PassDecision all = decided({NcclGroup::not_open, NcclGroup::not_open});
  assert_true(all.open);
  assert_false(all.nccl || all.again);
  assert_false(decided({NcclGroup::not_open, NcclGroup::unavailable}).open);
}

UNIT_TEST(ranks_that_differ_use_the_host) {
  for (const std::uint64_t other : {NcclGroup::unavailable, NcclGroup::not_open}) {
    const PassDecision decision = decided({NcclGroup::ready, other});
    assert_true(decision.again);
    assert_false(decision.nccl || decision.open);
  }
}

}  // namespace
