// SPDX-License-Identifier: BSD-3-Clause
// What the trials of SLIMPI_INTRA=auto decide between message buffers and reading in place.
#include "intra/copy_trials.h"

#include "tests/helper/cmocka_cxx.h"

using slimpi::intra::CopyTrials;

namespace {

constexpr int kTrials = 2 * (CopyTrials::kCounted + 1);

// Makes one series of trials. `first`: nanoseconds of the first trial in place; that with message
// buffers takes 9000.
void series(CopyTrials& trials, std::uint64_t buffers, std::uint64_t in_place,
            std::uint64_t first) {
  for (int call = 0; call < kTrials; ++call) {
    const bool reads = trials.next();
    assert_int_equal(reads, call >= kTrials / 2);
    assert_true(trials.trial());
    const std::uint64_t usual = reads ? in_place : buffers;
    trials.record(call == 0 ? 9000 : call == kTrials / 2 ? first : usual);
  }
}

void the_faster_way_is_used(void**) {
  CopyTrials faster, slower;
  series(faster, 1000, 600, 9000);
  series(slower, 600, 1000, 9000);
  for (int call = 0; call < CopyTrials::kSettled; ++call) {
    assert_true(faster.next());
    assert_false(faster.trial());
    assert_false(slower.next());
  }
}

void a_near_tie_keeps_the_buffers(void**) {
  CopyTrials trials;
  series(trials, 1000, 950, 9000);
  assert_false(trials.next());
}

void the_first_trial_of_a_kind_does_not_count(void**) {
  CopyTrials trials;
  series(trials, 600, 1000, 1);  // 1: the first trials would win
  assert_false(trials.next());
}

void a_disagreement_lasts_until_the_next_trials(void**) {
  CopyTrials trials;
  series(trials, 1000, 600, 9000);
  assert_true(trials.next());
  trials.disagreed();
  for (int call = 1; call < CopyTrials::kSettled; ++call) assert_false(trials.next());
  series(trials, 1000, 600, 9000);
  assert_true(trials.next());
}

// The times of an earlier series do not help a later one.
void every_series_starts_anew(void**) {
  CopyTrials trials;
  series(trials, 1000, 100, 9000);
  for (int call = 0; call < CopyTrials::kSettled; ++call) (void)trials.next();
  series(trials, 1000, 2000, 9000);
  assert_false(trials.next());
}

void trials_without_times_decide_for_the_buffers(void**) {
  CopyTrials trials;
  for (int call = 0; call < kTrials; ++call) {
    (void)trials.next();
    if (call >= kTrials / 2) trials.record(10);  // another call held the segment before
  }
  assert_false(trials.next());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_faster_way_is_used),
      cmocka_unit_test(a_near_tie_keeps_the_buffers),
      cmocka_unit_test(the_first_trial_of_a_kind_does_not_count),
      cmocka_unit_test(a_disagreement_lasts_until_the_next_trials),
      cmocka_unit_test(every_series_starts_anew),
      cmocka_unit_test(trials_without_times_decide_for_the_buffers),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
