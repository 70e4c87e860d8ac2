// SPDX-License-Identifier: BSD-3-Clause
// Which codec the next sum under SLIMPI_MAX_ERROR starts with.
#include "algorithm/codec_choice.h"

#include "tests/helper/cmocka_cxx.h"

using slimpi::algorithm::CodecChoice;
using slimpi::algorithm::CodecChoices;

namespace {

constexpr double kBound = 1e-2;  // the first codec for it is number 7

void what_passed_is_used_again(void**) {
  CodecChoice choice;
  assert_int_equal(choice.first(kBound), 7);
  choice.passed(7, 9, 9);
  for (int i = 0; i < 1000; ++i) {
    assert_int_equal(choice.first(kBound), 9);
    choice.passed(9, 9, 9);
  }
}

void room_of_several_sums_is_used(void**) {
  CodecChoice choice;
  for (int i = 0; i < 4; ++i) {
    assert_int_equal(choice.first(kBound), 7);
    choice.passed(7, 7, i == 2 ? 5 : 3);
  }
  assert_int_equal(choice.first(kBound), 5);  // the worst of the four
}

// Sums that differ: a coarser codec fails again and again, more and more rarely.
void a_try_that_fails_is_rare(void**) {
  CodecChoice choice;
  int failed = 0;
  for (int i = 0; i < 2000; ++i) {
    const int first = choice.first(kBound);
    failed += first < 7 ? 1 : 0;
    choice.passed(first, 7, 4);
  }
  assert_true(failed >= 5 && failed <= 14);
}

void sizes_have_their_own(void**) {
  CodecChoices choices;
  choices.of(1000).passed(7, 9, 9);
  assert_int_equal(choices.of(1000).first(kBound), 9);
  assert_int_equal(choices.of(1001).first(kBound), 7);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(what_passed_is_used_again),
      cmocka_unit_test(room_of_several_sums_is_used),
      cmocka_unit_test(a_try_that_fails_is_rare),
      cmocka_unit_test(sizes_have_their_own),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
