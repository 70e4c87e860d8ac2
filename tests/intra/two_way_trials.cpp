// SPDX-License-Identifier: BSD-3-Clause
// What the trials of SLIMPI_INTRA=auto decide between two ways to do a call.
#include "intra/two_way_trials.h"

#include "tests/helper/cmocka_cxx.h"

using slimpi::intra::kCopyTrials;
using slimpi::intra::kOverlapTrials;
using slimpi::intra::TrialRule;
using slimpi::intra::TwoWayTrials;

namespace {

constexpr const TrialRule* kRules[] = {&kCopyTrials, &kOverlapTrials};

// Makes one series of trials: nanoseconds of each way, and of the first trial of all. The first
// trial of the second way takes `set_up`, where the rule does not count it.
void series(TwoWayTrials& trials, const TrialRule& rule, std::uint64_t first, std::uint64_t second,
            std::uint64_t set_up) {
  for (int call = 0; call < rule.trials[0] + rule.trials[1]; ++call) {
    const bool second_way = trials.next();
    assert_int_equal(second_way, call >= rule.trials[0]);
    assert_int_equal(trials.second(), second_way);
    assert_true(trials.trial());
    const bool uncounted = call == 0 || (rule.uncounted[1] != 0 && call == rule.trials[0]);
    trials.record(uncounted ? set_up : second_way ? second : first, second_way);
  }
}

void settled(TwoWayTrials& trials, bool second, int calls = TwoWayTrials::kSettled) {
  for (int call = 0; call < calls; ++call) {
    assert_int_equal(trials.next(), second);
    assert_false(trials.trial());
    trials.record(1, !second);  // no trial
  }
}

void the_faster_way_is_used(void**) {
  for (const TrialRule* const rule : kRules) {
    TwoWayTrials first(*rule), second(*rule);
    series(first, *rule, 600, 1000, 9000);
    series(second, *rule, 1000, 600, 9000);
    settled(first, false);
    settled(second, true);
  }
}

void a_near_tie_keeps_the_first_way(void**) {
  for (const TrialRule* const rule : kRules) {
    TwoWayTrials trials(*rule);
    series(trials, *rule, 1000, 960, 9000);
    settled(trials, false, 1);
  }
}

// In place must be a tenth faster; working at once, a twentieth.
void the_rules_differ_in_what_is_near(void**) {
  TwoWayTrials copy(kCopyTrials), overlap(kOverlapTrials);
  series(copy, kCopyTrials, 1000, 920, 9000);
  series(overlap, kOverlapTrials, 1000, 920, 9000);
  settled(copy, false, 1);
  settled(overlap, true, 1);
}

// With 1 ns the uncounted trials would win.
void trials_with_set_up_do_not_count(void**) {
  TwoWayTrials copy(kCopyTrials), overlap(kOverlapTrials);
  series(copy, kCopyTrials, 600, 1000, 1);
  series(overlap, kOverlapTrials, 1000, 700, 1);
  settled(copy, false, 1);
  settled(overlap, true, 1);
}

void a_disagreement_lasts_until_the_next_trials(void**) {
  TwoWayTrials trials(kCopyTrials);
  series(trials, kCopyTrials, 1000, 600, 9000);
  settled(trials, true, 1);
  trials.disagreed();
  settled(trials, false, TwoWayTrials::kSettled - 1);
  series(trials, kCopyTrials, 1000, 600, 9000);
  settled(trials, true, 1);
}

// The times of an earlier series do not help a later one.
void every_series_starts_anew(void**) {
  for (const TrialRule* const rule : kRules) {
    TwoWayTrials trials(*rule);
    series(trials, *rule, 1000, 100, 9000);
    settled(trials, true);
    series(trials, *rule, 1000, 2000, 9000);
    settled(trials, false, 1);
  }
}

// Another call held the segment, or another rank of the node did not want pieces: no call was of
// the first way.
void without_a_time_of_the_first_way_the_rule_decides(void**) {
  for (const TrialRule* const rule : kRules) {
    TwoWayTrials trials(*rule);
    for (int call = 0; call < rule->trials[0] + rule->trials[1]; ++call) {
      (void)trials.next();
      trials.record(1000, true);
    }
    settled(trials, rule == &kOverlapTrials, 1);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_faster_way_is_used),
      cmocka_unit_test(a_near_tie_keeps_the_first_way),
      cmocka_unit_test(the_rules_differ_in_what_is_near),
      cmocka_unit_test(trials_with_set_up_do_not_count),
      cmocka_unit_test(a_disagreement_lasts_until_the_next_trials),
      cmocka_unit_test(every_series_starts_anew),
      cmocka_unit_test(without_a_time_of_the_first_way_the_rule_decides),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
