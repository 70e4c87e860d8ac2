// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/turns.h"

#include <set>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi::algorithm;

constexpr int kMostMembers = 40;

void each_sends_to_one_and_hears_from_one(void**) {
  for (int members = 2; members <= kMostMembers; ++members)
    for (int round = 0; round < members - 1; ++round)
      for (int me = 0; me < members; ++me) {
        const Pair mine = pair_in_round(members, me, round);
        assert_in_range(mine.to, 0, members - 1);
        assert_int_not_equal(mine.to, me);
        assert_int_equal(pair_in_round(members, mine.to, round).from, me);
        if (members % 2 == 0) assert_int_equal(mine.to, mine.from);
      }
}

void each_meets_all_others_once(void**) {
  for (int members = 2; members <= kMostMembers; ++members)
    for (int me = 0; me < members; ++me) {
      std::set<int> sent, heard;
      const Turns turns(members, me, 1, 1, 1);
      for (int round = 0; round < turns.rounds(); ++round) {
        sent.insert(turns.pair(round).to);
        heard.insert(turns.pair(round).from);
        assert_int_equal(turns.round_from(turns.pair(round).from), round);
      }
      assert_int_equal(sent.size(), members - 1);
      assert_int_equal(heard.size(), members - 1);
    }
}

// Counts that each segment is scattered and then gathered once in every round.
void every_segment_has_its_turns(void**) {
  for (const int members : {2, 3, 4, 7})
    for (const int gap : {1, 2})
      for (const int segments : {1, 2, 9}) {
        const Turns turns(members, 0, segments, 4, gap);
        std::set<std::pair<std::int64_t, int>> scattered, gathered;
        for (std::int64_t index = 0; index < turns.count(); ++index) {
          const Turn turn = turns.at(index);
          if (turn.number < 0) continue;
          assert_true(turn.number < segments);
          auto& done = turn.gather ? gathered : scattered;
          assert_true(done.insert({turn.number, turn.round}).second);
          if (turn.gather)
            for (int round = 0; round < turns.rounds(); ++round)
              assert_true(scattered.contains({turn.number, round}));
        }
        assert_int_equal(scattered.size(), segments * (members - 1));
        assert_int_equal(gathered.size(), segments * (members - 1));
      }
}

// What a turn needs is over before it, so the schedule never waits for itself.
void a_turn_is_ready_when_those_before_are_over(void**) {
  for (const int members : {2, 3, 4, 7})
    for (const int slots : {1, 2, 4, 8})
      for (const int gap : {1, 2}) {
        const int segments = slots < 4 ? slots : 20;
        const Turns turns(members, 1, segments, slots, gap);
        for (std::int64_t index = 0; index < turns.count(); ++index)
          assert_true(turns.ready(index, index));
      }
}

void a_sum_waits_for_all_of_its_shares(void**) {
  const Turns turns(4, 0, 3, 4, 1);
  // Turns 0 to 2 scatter segment 0, 3 to 5 gather nothing yet; 9 gathers segment 0.
  assert_int_equal(turns.at(9).number, 0);
  assert_true(turns.at(9).gather);
  assert_false(turns.ready(9, 2));
  assert_true(turns.ready(9, 3));
  assert_true(turns.ready(3, 0));
}

void a_place_is_free_when_its_last_message_is_gone(void**) {
  const Turns turns(3, 0, 10, 4, 1);
  // A step has four turns: with four slots, turn 16 scatters segment 4 from segment 0's place.
  assert_int_equal(turns.at(16).number, 4);
  assert_false(turns.ready(16, 1));
  assert_true(turns.ready(16, 2));
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
