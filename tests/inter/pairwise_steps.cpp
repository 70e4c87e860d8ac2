// SPDX-License-Identifier: BSD-3-Clause
#include "inter/pairwise.h"

#include <set>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi::inter;

constexpr int kMostMembers = 40;

void each_sends_to_one_and_hears_from_one(void**) {
  for (int group_size = 2; group_size <= kMostMembers; ++group_size)
    for (int round = 0; round < group_size - 1; ++round)
      for (int me = 0; me < group_size; ++me) {
        const StepPeers mine = peers_in_round(group_size, me, round);
        assert_in_range(mine.to, 0, group_size - 1);
        assert_int_not_equal(mine.to, me);
        assert_int_equal(peers_in_round(group_size, mine.to, round).from, me);
        if (group_size % 2 == 0) assert_int_equal(mine.to, mine.from);
      }
}

void each_meets_all_others_once(void**) {
  for (int group_size = 2; group_size <= kMostMembers; ++group_size)
    for (int me = 0; me < group_size; ++me) {
      std::set<int> sent, heard;
      const PairwiseSteps steps(group_size, me, 1, 1, 1);
      for (int round = 0; round < steps.rounds(); ++round) {
        sent.insert(steps.peers_in(round).to);
        heard.insert(steps.peers_in(round).from);
        assert_int_equal(steps.round_from(steps.peers_in(round).from), round);
      }
      assert_int_equal(sent.size(), group_size - 1);
      assert_int_equal(heard.size(), group_size - 1);
    }
}

// Counts that each segment is scattered and then gathered once in every round.
void every_segment_has_its_turns(void**) {
  for (const int group_size : {2, 3, 4, 7})
    for (const int gap : {1, 2})
      for (const int segments : {1, 2, 9}) {
        const PairwiseSteps steps(group_size, 0, segments, 4, gap);
        std::set<std::pair<std::int64_t, int>> scattered, gathered;
        for (std::int64_t index = 0; index < steps.count(); ++index) {
          const Step step = steps.at(index);
          if (step.number < 0) continue;
          assert_true(step.number < segments);
          auto& done = step.gather ? gathered : scattered;
          assert_true(done.insert({step.number, step.round}).second);
          if (step.gather)
            for (int round = 0; round < steps.rounds(); ++round)
              assert_true(scattered.contains({step.number, round}));
        }
        assert_int_equal(scattered.size(), segments * (group_size - 1));
        assert_int_equal(gathered.size(), segments * (group_size - 1));
      }
}

// What a turn needs is over before it, so the schedule never waits for itself.
void a_turn_is_ready_when_those_before_are_over(void**) {
  for (const int group_size : {2, 3, 4, 7})
    for (const int depth : {1, 2, 4, 8})
      for (const int gap : {1, 2}) {
        const int segments = depth < 4 ? depth : 20;
        const PairwiseSteps steps(group_size, 1, segments, depth, gap);
        for (std::int64_t index = 0; index < steps.count(); ++index)
          assert_true(steps.ready(index, index));
      }
}

void a_sum_waits_for_all_of_its_shares(void**) {
  const PairwiseSteps steps(4, 0, 3, 4, 1);
  // Turns 0 to 2 scatter segment 0, 3 to 5 gather nothing yet; 9 gathers segment 0.
  assert_int_equal(steps.at(9).number, 0);
  assert_true(steps.at(9).gather);
  assert_false(steps.ready(9, 2));
  assert_true(steps.ready(9, 3));
  assert_true(steps.ready(3, 0));
}

void a_place_is_free_when_its_last_message_is_gone(void**) {
  const PairwiseSteps steps(3, 0, 10, 4, 1);
  // A step has four turns: with four slots, turn 16 scatters segment 4 from segment 0's place.
  assert_int_equal(steps.at(16).number, 4);
  assert_false(steps.ready(16, 1));
  assert_true(steps.ready(16, 2));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(each_sends_to_one_and_hears_from_one),
      cmocka_unit_test(each_meets_all_others_once),
      cmocka_unit_test(every_segment_has_its_turns),
      cmocka_unit_test(a_turn_is_ready_when_those_before_are_over),
      cmocka_unit_test(a_sum_waits_for_all_of_its_shares),
      cmocka_unit_test(a_place_is_free_when_its_last_message_is_gone),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
