// SPDX-License-Identifier: BSD-3-Clause
// Which buffers the ranks of a node use, by what all of them published.
#include "intra/pass_decision.h"

#include <initializer_list>

#include "tests/helper/cmocka_cxx.h"

using slimpi::intra::decide;
using slimpi::intra::DevicePath;
using slimpi::intra::NodeBarrier;
using slimpi::intra::PassDecision;
using Path = DevicePath::Path;

namespace {

PassDecision decided(std::initializer_list<std::uint64_t> words, Path own) {
  NodeBarrier::Published joined{UINT64_MAX, 0};
  for (const std::uint64_t word : words) {
    joined.all &= word;
    joined.any |= word;
  }
  return decide(joined, own);
}

void ranks_that_are_alike_use_what_they_have(void**) {
  const PassDecision linked = decided({DevicePath::ready, DevicePath::ready}, Path::nccl);
  assert_true(linked.path == Path::nccl);
  assert_false(linked.open || linked.again);
  const PassDecision host = decided({DevicePath::unavailable, DevicePath::unavailable}, Path::host);
  assert_true(host.path == Path::host);
  assert_false(host.open || host.again);
}

void a_path_is_opened_if_all_can(void**) {
  const PassDecision all = decided({DevicePath::not_open, DevicePath::not_open}, Path::host);
  assert_true(all.open && !all.again);
  const PassDecision some = decided({DevicePath::not_open, DevicePath::unavailable}, Path::host);
  assert_false(some.open);
}

// Each rank proposed its own; all use the host's buffers.
void ranks_that_differ_use_the_host(void**) {
  for (const std::uint64_t other : {DevicePath::unavailable, DevicePath::not_open})
    for (const Path own : {Path::nccl, Path::host}) {
      const PassDecision decision = decided({DevicePath::ready, other}, own);
      assert_true(decision.path == Path::host);
      assert_true(decision.again);
      assert_false(decision.open);
    }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(ranks_that_are_alike_use_what_they_have),
      cmocka_unit_test(a_path_is_opened_if_all_can),
      cmocka_unit_test(ranks_that_differ_use_the_host),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
