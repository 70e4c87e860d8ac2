// SPDX-License-Identifier: BSD-3-Clause
// What the trials of SLIMPI_INTRA=auto decide between work in pieces and work at once.
#include "intra/overlap_trials.h"

#include "tests/helper/cmocka_cxx.h"

using slimpi::intra::OverlapTrials;

namespace {

// Makes one series of trials, in the order that few calls of a program gain from.
void series(OverlapTrials& trials, std::uint64_t in_pieces, std::uint64_t at_once,
            std::uint64_t first) {
  for (int call = 0; call < OverlapTrials::kInPieces + OverlapTrials::kAtOnce; ++call) {
    const bool pieces = trials.next();
    assert_int_equal(pieces, call < OverlapTrials::kInPieces);
    trials.record(call == 0 ? first : pieces ? in_pieces : at_once, pieces);
  }
}

void the_faster_way_is_used(void**) {
  OverlapTrials pieces, once;
  series(pieces, 700, 1000, 9000);
  series(once, 1000, 700, 9000);
  for (int call = 0; call < OverlapTrials::kSettled; ++call) {
    assert_true(pieces.next());
    assert_false(once.next());
    once.record(1, false);  // no trial
  }
  series(once, 700, 1000, 9000);
  assert_true(once.next());
}

void a_near_tie_keeps_the_pieces(void**) {
  OverlapTrials trials;
  series(trials, 1000, 960, 9000);
  assert_true(trials.next());
}

void the_first_call_does_not_count(void**) {
  OverlapTrials trials;
  series(trials, 1000, 700, 1);  // 1: the first call would win
  assert_false(trials.next());
}

// Where another rank of the node does not want pieces, no call works in pieces.
void without_a_time_in_pieces_they_are_not_used(void**) {
  OverlapTrials trials;
  for (int call = 0; call < OverlapTrials::kInPieces + OverlapTrials::kAtOnce; ++call) {
    (void)trials.next();
    trials.record(1000, false);
  }
  assert_false(trials.next());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_faster_way_is_used),
      cmocka_unit_test(a_near_tie_keeps_the_pieces),
      cmocka_unit_test(the_first_call_does_not_count),
      cmocka_unit_test(without_a_time_in_pieces_they_are_not_used),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
