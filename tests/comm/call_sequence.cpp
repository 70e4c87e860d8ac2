// SPDX-License-Identifier: BSD-3-Clause
// When the order of calls names buffers: the period of the counts, and buffers that are always new.
#include "comm/call_sequence.h"

#include <array>
#include <memory>
#include <vector>

#include "tests/helper/cmocka_cxx.h"

using slimpi::comm::CallSequence;

namespace {

char g_memory[100000];  // its bytes lend their addresses

// Steps of a program that sums `counts` in turn; `anew`: in buffers that it never had before.
void run(CallSequence& sequence, const std::vector<std::uint64_t>& counts, int steps, bool anew) {
  static int next = 0;
  for (int step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < counts.size(); ++i) {
      sequence.add(counts[i]);
      (void)sequence.update();
      const std::size_t place = anew ? std::size_t(1000 + next++ % 90000) : i;
      sequence.agreed(sequence.note_use(&g_memory[place], counts[i]));
    }
}

void finds_the_period(void**) {
  for (const std::vector<std::uint64_t>& counts :
       {std::vector<std::uint64_t>{7}, {1, 2}, {1, 1, 2}, {5, 5, 6, 5, 5, 6, 9}}) {
    CallSequence sequence;
    run(sequence, counts, 3000, true);
    assert_int_equal(sequence.period(), counts.size());
    assert_int_equal(sequence.in_use(), counts.size());
  }
}

void needs_three_repeats(void**) {
  CallSequence sequence;
  std::vector<std::uint64_t> counts;
  for (std::uint64_t i = 0; i < 20; ++i) counts.push_back(i);
  run(sequence, counts, 2, true);
  assert_int_equal(sequence.period(), 0);
  run(sequence, counts, 1, true);
  assert_int_equal(sequence.period(), 20);
}

// The first steps of a program whose buffers stay where they are.
void buffers_that_return_keep_their_addresses(void**) {
  CallSequence sequence;
  run(sequence, {1, 2, 3}, 200, false);
  assert_int_equal(sequence.period(), 3);
  assert_int_equal(sequence.in_use(), 0);
}

void goes_back_to_addresses(void**) {
  CallSequence sequence;
  run(sequence, {1, 2, 3}, 50, true);
  assert_int_equal(sequence.in_use(), 3);
  run(sequence, {1, 2, 3}, 50, false);
  assert_int_equal(sequence.in_use(), 0);
}

void a_broken_sequence_has_no_period(void**) {
  CallSequence sequence;
  run(sequence, {1, 2, 3}, 50, true);
  sequence.add(4);
  assert_true(sequence.update());
  assert_int_equal(sequence.in_use(), 0);
  run(sequence, {1, 2, 3}, 2000, true);  // starts over, and finds it again
  assert_int_equal(sequence.in_use(), 3);
}

// Every period of a long program stays inside the memory of the sequence, and is never forgotten.
void long_periods_stay_in_bounds(void**) {
  struct Bounded {
    CallSequence sequence;
    std::array<std::uint64_t, 8192> after{};
  };
  constexpr std::uint64_t kPattern = 0x5a5a5a5a5a5a5a5a;
  for (std::uint64_t period = 1; period <= CallSequence::kLongest + 400; ++period) {
    auto bounded = std::make_unique<Bounded>();
    bounded->after.fill(kPattern);
    for (std::uint64_t call = 0; call < 12000; ++call) bounded->sequence.add(call % period);
    for (const std::uint64_t word : bounded->after) assert_int_equal(word, kPattern);
    const bool found = period <= CallSequence::kLongest;
    assert_int_equal(bounded->sequence.period(), found ? period : 0);
  }
}

// Steps in which the sum of counts[i] is in the buffer places[i].
std::uint64_t in_use_after(const std::vector<std::uint64_t>& counts,
                           const std::vector<std::size_t>& places, int steps,
                           bool* unnamed = nullptr) {
  CallSequence sequence;
  for (int step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < counts.size(); ++i) {
      sequence.add(counts[i]);
      (void)sequence.update();
      sequence.agreed(sequence.note_use(&g_memory[places[i]], counts[i]));
    }
  (void)sequence.update();
  if (unnamed != nullptr) *unnamed = sequence.unnamed();
  return sequence.in_use();
}

// malloc gives a buffer the address of another one that was freed before it.
void recycled_addresses_are_no_names(void**) {
  assert_int_equal(in_use_after({2, 3, 2}, {0, 1, 0}, 20), 3);
  assert_int_equal(in_use_after({2, 2, 3, 2}, {0, 1, 2, 0}, 100), 4);
  // The counts repeat twice in a step, and each buffer is one tensor's.
  assert_int_equal(in_use_after({2, 3, 2, 3}, {0, 1, 2, 3}, 100), 0);
  // Equal counts: the step is not known, and the user is told.
  bool unnamed = false;
  assert_int_equal(in_use_after({2, 2, 2}, {0, 1, 0}, 100, &unnamed), 0);
  assert_true(unnamed);
  assert_int_equal(in_use_after({2, 2, 2}, {0, 1, 2}, 100, &unnamed), 0);
  assert_false(unnamed);
}

// A changed distance is the only sign before the period is known.
void an_irregular_use_is_seen_at_once(void**) {
  using Use = CallSequence::Use;
  const std::size_t places[] = {0, 1, 0, 0, 1, 0, 0, 1, 0};
  const Use uses[] = {Use::first,     Use::first,     Use::known, Use::irregular, Use::known,
                      Use::irregular, Use::irregular, Use::known, Use::irregular};
  for (const bool alike : {false, true}) {
    CallSequence sequence;
    for (std::size_t i = 0; i < 9; ++i) {
      const std::uint64_t count = places[i] == 0 || alike ? 2 : 3;
      sequence.add(count);
      const Use use = sequence.note_use(&g_memory[places[i]], count);
      assert_int_equal(int(use), int(uses[i]));
      sequence.agreed(use);
      assert_int_equal(sequence.suspect(), use == Use::irregular);
    }
    assert_false(sequence.unnamed());
  }
}

// Fixed buffers, and one more sum in every tenth step: a period of 31 sums, in which each address
// stands for one tensor.
void sums_that_are_added_now_and_then_change_nothing(void**) {
  CallSequence sequence;
  std::uint64_t suspects = 0;
  for (int step = 0; step < 4000; ++step)
    for (std::size_t place = 0; place < (step % 10 == 9 ? 4 : 3); ++place) {
      sequence.add(place);
      (void)sequence.update();
      sequence.agreed(sequence.note_use(&g_memory[place], place));
      suspects += sequence.suspect() ? 1 : 0;
      assert_int_equal(sequence.in_use(), 0);
      if (step > 1000) assert_false(sequence.suspect());
    }
  assert_int_equal(sequence.period(), 31);
  assert_in_range(suspects, 1, CallSequence::kLearning / 4);
}

// Equal counts may be several tensors, so more evidence is wanted.
void equal_counts_take_longer(void**) {
  CallSequence unlike, alike;
  run(unlike, {1, 2}, 10, true);
  run(alike, {1}, 20, true);
  assert_int_equal(unlike.in_use(), 2);
  assert_int_equal(alike.in_use(), 0);
  run(alike, {1}, 60, true);
  assert_int_equal(alike.in_use(), 1);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(finds_the_period),
                              cmocka_unit_test(needs_three_repeats),
                              cmocka_unit_test(buffers_that_return_keep_their_addresses),
                              cmocka_unit_test(goes_back_to_addresses),
                              cmocka_unit_test(a_broken_sequence_has_no_period),
                              cmocka_unit_test(long_periods_stay_in_bounds),
                              cmocka_unit_test(recycled_addresses_are_no_names),
                              cmocka_unit_test(an_irregular_use_is_seen_at_once),
                              cmocka_unit_test(sums_that_are_added_now_and_then_change_nothing),
                              cmocka_unit_test(equal_counts_take_longer)};
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
