// SPDX-License-Identifier: BSD-3-Clause
#include "comm/autotuner.h"

#include "tests/helper/base/unit_test.h"

using slimpi::comm::Autotuner;

namespace {

// Makes one call that takes what `times` says of the candidate; returns which candidate it was.
int call(Autotuner& autotuner, const std::uint64_t* times) {
  const int candidate = autotuner.next();
  if (autotuner.record(times[candidate])) autotuner.agreed();
  return candidate;
}

UNIT_TEST(finds_the_fastest_after_a_few_rounds) {
  Autotuner autotuner(3);
  const std::uint64_t times[] = {500, 200, 300};
  for (int i = 0; i < 3 * Autotuner::kRounds; ++i) {
    assert_false(autotuner.settled());
    assert_int_equal(call(autotuner, times), i % 3);
  }
  assert_true(autotuner.settled());
  for (int i = 0; i < 1000; ++i) assert_int_equal(call(autotuner, times), 1);
}

// Trials take turns, so a candidate is slower in them than in a row of calls, where its memory
// stays in the caches.
UNIT_TEST(those_that_are_about_as_fast_meet_in_a_final) {
  Autotuner autotuner(3);
  int before = -1;
  const auto make_call = [&](int hiccup) {
    const int candidate = autotuner.next();
    const std::uint64_t times[] = {100, std::uint64_t(candidate == before ? 93 : 112), 140};
    if (autotuner.record(times[candidate] + std::uint64_t(hiccup))) autotuner.agreed();
    before = candidate;
    return candidate;
  };
  for (int i = 0; i < 3 * Autotuner::kRounds; ++i) make_call(0);
  assert_false(autotuner.settled());
  int calls[3] = {};
  for (int i = 0; i < 2 * Autotuner::kInARow * Autotuner::kRepeats; ++i) {
    assert_false(autotuner.settled());
    ++calls[make_call(i % 5 == 0 ? 1000 : 0)];
  }
  assert_int_equal(calls[2], 0);
  assert_int_equal(calls[0], calls[1]);
  assert_true(autotuner.settled());
  for (int i = 0; i < 100; ++i) assert_int_equal(make_call(0), 1);
}

// A candidate that was unlucky in its trials gets other trials. These cost a hundredth of the time
// between them.
UNIT_TEST(a_rejected_candidate_gets_another_chance) {
  Autotuner autotuner(2);
  const std::uint64_t unlucky[] = {200, 600}, later[] = {200, 100};
  for (int i = 0; i < 2 * Autotuner::kRounds; ++i) call(autotuner, unlucky);
  int winners = 0, calls = 0;
  for (; autotuner.settled() && calls < 100000; ++calls) winners += call(autotuner, later) == 0;
  assert_int_equal(winners, calls);
  assert_in_range(calls, 3 * Autotuner::kCostRatio * Autotuner::kRounds,
                  3 * Autotuner::kCostRatio * Autotuner::kRounds + Autotuner::kWatch);
  for (int i = 0; i < 2 * Autotuner::kRounds; ++i) call(autotuner, later);
  for (int i = 0; i < 100; ++i) assert_int_equal(call(autotuner, later), 1);
}

// Ranks that measured other times go on with the same candidate: they take the minimum of all
// ranks.
UNIT_TEST(all_ranks_choose_alike) {
  Autotuner ranks[2] = {Autotuner(2), Autotuner(2)};
  for (int i = 0; i < 2 * Autotuner::kRounds; ++i) {
    const std::uint64_t times[2][2] = {{100, 150}, {100, 60}};
    assert_int_equal(ranks[0].next(), ranks[1].next());
    const bool agree = ranks[0].record(times[0][ranks[0].next()]);
    assert_int_equal(ranks[1].record(times[1][ranks[1].next()]), agree);
    if (!agree) continue;
    const auto mine = ranks[0].times_to_agree(), other = ranks[1].times_to_agree();
    assert_int_equal(mine.size(), other.size());
    for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = other[k] = std::min(mine[k], other[k]);
    for (Autotuner& rank : ranks) rank.agreed();
  }
  for (const Autotuner& rank : ranks) assert_int_equal(rank.next(), 1);
}

UNIT_TEST(set_up_in_the_first_round_does_not_count) {
  Autotuner autotuner(2);
  const std::uint64_t first[] = {100, 100000}, later[] = {100, 50};
  for (int i = 0; i < 2 * Autotuner::kRounds; ++i) call(autotuner, i < 2 ? first : later);
  assert_int_equal(autotuner.next(), 1);
}

UNIT_TEST(looks_again_when_times_drift) {
  Autotuner autotuner(2);
  const std::uint64_t before[] = {500, 200}, slow_network[] = {5000, 900}, fast[] = {50, 150};
  for (int i = 0; i < 2 * Autotuner::kRounds + 2 * Autotuner::kWatch; ++i) call(autotuner, before);
  assert_true(autotuner.settled());
  for (int i = 0; i < Autotuner::kWatch; ++i) call(autotuner, slow_network);
  assert_false(autotuner.settled());
  for (int i = 0; i < 2 * Autotuner::kRounds + Autotuner::kWatch; ++i)
    call(autotuner, slow_network);
  assert_int_equal(autotuner.next(), 1);
  for (int i = 0; i < Autotuner::kWatch + 2 * Autotuner::kRounds; ++i) call(autotuner, fast);
  assert_int_equal(autotuner.next(), 0);
}

// A call that is slow because its core was busy, or fast because its link had rested, changes
// nothing.
UNIT_TEST(calls_out_of_the_ordinary_change_nothing) {
  Autotuner autotuner(2);
  const std::uint64_t usual[] = {500, 200}, hiccup[] = {500, 90000}, rested[] = {500, 10};
  for (int i = 0; i < 2 * Autotuner::kRounds; ++i) call(autotuner, usual);
  // Between two looks at the other candidates there are usual calls only, or a slow call, or a fast
  // one.
  for (int i = 0; i < 9 * Autotuner::kWatch; ++i) {
    const std::uint64_t* const kinds[] = {usual, hiccup, rested};
    call(autotuner, i % 7 == 6 ? kinds[i / Autotuner::kWatch % 3] : usual);
    assert_true(autotuner.settled());
  }
}

}  // namespace
