// SPDX-License-Identifier: BSD-3-Clause
// What the trials inside a node decide between several ways to do a call.
#include "intra/trials.h"

#include <map>

#include "tests/helper/cmocka_cxx.h"

using slimpi::intra::kCopyTrials;
using slimpi::intra::kOverlapTrials;
using slimpi::intra::kStoreTrials;
using slimpi::intra::TrialRow;
using slimpi::intra::TrialRule;
using slimpi::intra::Trials;
using slimpi::intra::Way;

namespace {

constexpr const TrialRule* kRules[] = {&kStoreTrials, &kCopyTrials, &kOverlapTrials};
using Times = std::map<Way, std::uint64_t>;  // nanoseconds

// Makes one series of trials. Uncounted ones take `set_up`.
void series(Trials& trials, const TrialRule& rule, const Times& times, std::uint64_t set_up) {
  for (const TrialRow& row : rule.rows) {
    for (int call = 0; call < row.calls; ++call) {
      assert_true(trials.next() == row.way);
      assert_true(trials.way() == row.way);
      assert_true(trials.trial());
      trials.record(call < row.uncounted ? set_up : times.at(row.way), row.way);
    }
  }
}

void settled(Trials& trials, Way way, int calls = Trials::kSettled) {
  for (int call = 0; call < calls; ++call) {
    assert_true(trials.next() == way);
    assert_false(trials.trial());
    for (int other = 0; other < slimpi::intra::kWays; ++other) trials.record(1, Way(other));
  }
}

// All ways of the rule at `other` nanoseconds, but one.
Times all_but(const TrialRule& rule, std::uint64_t other, Way way, std::uint64_t time) {
  Times times;
  for (const TrialRow& row : rule.rows) times[row.way] = other;
  times[way] = time;
  return times;
}

Way first(const TrialRule& rule) {
  return rule.rows[0].way;
}

void the_fastest_way_is_used(void**) {
  for (const TrialRule* const rule : kRules) {
    for (const TrialRow& row : rule->rows) {
      Trials trials(*rule);
      series(trials, *rule, all_but(*rule, 1000, row.way, 600), 9000);
      settled(trials, row.way);
    }
  }
  Trials trials(kCopyTrials);
  series(trials, kCopyTrials,
         {{Way::buffers, 1000},
          {Way::in_place, 700},
          {Way::buffers_ordinary, 500},
          {Way::buffers_non_temporal, 600}},
         9000);
  settled(trials, Way::buffers_ordinary);
}

void a_near_tie_keeps_the_first_way(void**) {
  for (const TrialRule* const rule : kRules) {
    for (const TrialRow& row : rule->rows) {
      Trials trials(*rule);
      series(trials, *rule, all_but(*rule, 1000, row.way, 960), 9000);
      settled(trials, first(*rule), 1);
    }
  }
}

// Other stores must be a fifth faster, in place a tenth, at once a twentieth.
void the_rows_differ_in_what_is_near(void**) {
  struct Expected {
    const TrialRule* rule;
    Way way;
    std::uint64_t near, faster;
  };
  for (const Expected& row : {Expected{&kStoreTrials, Way::buffers_ordinary, 810, 790},
                              {&kCopyTrials, Way::buffers_non_temporal, 810, 790},
                              {&kCopyTrials, Way::in_place, 910, 890},
                              {&kOverlapTrials, Way::at_once, 955, 945}}) {
    Trials near(*row.rule), faster(*row.rule);
    series(near, *row.rule, all_but(*row.rule, 1000, row.way, row.near), 9000);
    series(faster, *row.rule, all_but(*row.rule, 1000, row.way, row.faster), 9000);
    settled(near, first(*row.rule), 1);
    settled(faster, row.way, 1);
  }
}

// With 1 ns the uncounted trials would win.
void trials_with_set_up_do_not_count(void**) {
  for (const TrialRule* const rule : kRules) {
    Trials trials(*rule);
    series(trials, *rule, all_but(*rule, 1000, rule->rows[1].way, 700), 1);
    settled(trials, rule->rows[1].way, 1);
  }
  Trials trials(kOverlapTrials);
  series(trials, kOverlapTrials, {{Way::pieces, 600}, {Way::at_once, 1000}}, 1);
  settled(trials, Way::pieces, 1);
}

// Between the first row and the second, the ranks moved to cores that share a cache.
void what_is_faster_because_the_machine_changed_does_not_win(void**) {
  for (const TrialRule* const rule : {&kStoreTrials, &kCopyTrials}) {
    Trials trials(*rule);
    for (std::size_t row = 0; row < rule->rows.size(); ++row) {
      for (int call = 0; call < rule->rows[row].calls; ++call) {
        (void)trials.next();
        trials.record(row == 0 ? 1000 : 600, rule->rows[row].way);
      }
    }
    settled(trials, Way::buffers, 1);
  }
}

void a_disagreement_lasts_until_the_next_trials(void**) {
  Trials trials(kCopyTrials);
  const Times times = all_but(kCopyTrials, 1000, Way::in_place, 600);
  series(trials, kCopyTrials, times, 9000);
  settled(trials, Way::in_place, 1);
  trials.disagreed();
  settled(trials, Way::buffers, Trials::kSettled - 1);
  series(trials, kCopyTrials, times, 9000);
  settled(trials, Way::in_place, 1);
}

// The times of an earlier series do not help a later one.
void every_series_starts_anew(void**) {
  for (const TrialRule* const rule : kRules) {
    const Way second = rule->rows[1].way;
    Trials trials(*rule);
    series(trials, *rule, all_but(*rule, 1000, second, 100), 9000);
    settled(trials, second);
    series(trials, *rule, all_but(*rule, 1000, second, 2000), 9000);
    settled(trials, first(*rule), 1);
  }
}

// A call that failed or went to MPI has no time, but all ranks count it.
void calls_without_a_time_count(void**) {
  for (const TrialRule* const rule : kRules) {
    Trials trials(*rule);
    for (const TrialRow& row : rule->rows)
      for (int call = 0; call < row.calls; ++call) assert_true(trials.next() == row.way);
    settled(trials, rule->if_untimed, 1);
  }
}

// Another call held the segment, or another rank of the node did not want pieces: no call was of
// the first way.
void without_a_time_of_the_first_way_the_rule_decides(void**) {
  for (const TrialRule* const rule : kRules) {
    Trials trials(*rule);
    for (const TrialRow& row : rule->rows) {
      for (int call = 0; call < row.calls; ++call) {
        (void)trials.next();
        trials.record(1000, rule->rows[1].way);
      }
    }
    settled(trials, rule->if_untimed, 1);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_fastest_way_is_used),
      cmocka_unit_test(a_near_tie_keeps_the_first_way),
      cmocka_unit_test(the_rows_differ_in_what_is_near),
      cmocka_unit_test(trials_with_set_up_do_not_count),
      cmocka_unit_test(what_is_faster_because_the_machine_changed_does_not_win),
      cmocka_unit_test(a_disagreement_lasts_until_the_next_trials),
      cmocka_unit_test(every_series_starts_anew),
      cmocka_unit_test(calls_without_a_time_count),
      cmocka_unit_test(without_a_time_of_the_first_way_the_rule_decides),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
