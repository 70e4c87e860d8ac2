// SPDX-License-Identifier: BSD-3-Clause
// Tests which codec the next sum under SLIMPI_MAX_ERROR starts with.
#include "algorithm/codec_choice.h"

#include "tests/helper/base/unit_test.h"

using slimpi::algorithm::CodecChoice;
using slimpi::algorithm::CodecChoices;

namespace {

constexpr double kBound = 1e-2;  // the first codec for it is number 7

UNIT_TEST(what_passed_is_used_again) {
  CodecChoice choice;
  assert_int_equal(choice.first(kBound), 7);
  choice.passed(7, 9, 9);
  for (int i = 0; i < 1000; ++i) {
    assert_int_equal(choice.first(kBound), 9);
    choice.passed(9, 9, 9);
  }
}

UNIT_TEST(room_of_several_sums_is_used) {
  CodecChoice choice;
  for (int i = 0; i < 4; ++i) {
    assert_int_equal(choice.first(kBound), 7);
    choice.passed(7, 7, i == 2 ? 5 : 3);
  }
  assert_int_equal(choice.first(kBound), 5);  // the worst of the four
}

// The sums differ, so a coarser codec fails again and again; tries of it become rarer and rarer.
UNIT_TEST(a_try_that_fails_is_rare) {
  CodecChoice choice;
  int failed = 0;
  for (int i = 0; i < 2000; ++i) {
    const int first = choice.first(kBound);
    failed += first < 7 ? 1 : 0;
    choice.passed(first, 7, 4);
  }
  assert_true(failed >= 5 && failed <= 14);
}

UNIT_TEST(sizes_have_their_own) {
  CodecChoices choices;
  choices.of(1000).passed(7, 9, 9);
  assert_int_equal(choices.of(1000).first(kBound), 9);
  assert_int_equal(choices.of(1001).first(kBound), 7);
}

}  // namespace
