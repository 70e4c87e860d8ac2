// SPDX-License-Identifier: BSD-3-Clause
#include "algorithm/message_rate.h"

#include <initializer_list>

#include "tests/helper/cmocka_cxx.h"

namespace {

using namespace slimpi;
using algorithm::MessageRate;
using comm::SegmentClass;

// An agreement costs messages, so the ranks agree more and more rarely, at calls that all know.
void the_ranks_agree_at_powers_of_two(void**) {
  MessageRate rate;
  for (int call = 1; call <= 100; ++call) {
    const bool wanted = call == 4 || call == 8 || call == 16 || call == 32 || call == 64;
    assert_int_equal(rate.due(), wanted);
  }
}

void the_fastest_call_since_then_counts(void**) {
  MessageRate rate;
  assert_true(rate.fastest() == MessageRate::kUnknown);
  rate.sent(3'000'000, 1'000'000);
  rate.sent(9'000'000, 1'000'000'000);
  assert_int_equal(rate.fastest(), 3'000'000'000);
  (void)rate.choose(rate.fastest(), true, SegmentClass::large);
  rate.sent(9'000'000, 1'000'000'000);
  assert_int_equal(rate.fastest(), 9'000'000);
}

void a_fast_network_gets_long_messages(void**) {
  constexpr std::uint64_t kFast = MessageRate::kFast;
  MessageRate rate;
  for (const SegmentClass now : {SegmentClass::large, SegmentClass::longest}) {
    assert_true(rate.choose(kFast, false, now) == SegmentClass::longest);
    assert_true(rate.choose(kFast - 1, false, now) == now);
    assert_true(rate.choose(kFast / 2, false, now) == now);
    assert_true(rate.choose(kFast / 2 - 1, false, now) == SegmentClass::large);
    assert_true(rate.choose(MessageRate::kUnknown, false, now) == now);
  }
}

// A host's short messages cost a GPU too much, however fast the network is.
void a_gpu_has_no_short_messages(void**) {
  MessageRate rate;
  for (const std::uint64_t slowest :
       {std::uint64_t(1), MessageRate::kFast, MessageRate::kUnknown}) {
    assert_true(rate.choose(slowest, false, SegmentClass::small) == SegmentClass::small);
    assert_true(rate.choose(slowest, true, SegmentClass::small) == SegmentClass::large);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_ranks_agree_at_powers_of_two),
      cmocka_unit_test(the_fastest_call_since_then_counts),
      cmocka_unit_test(a_fast_network_gets_long_messages),
      cmocka_unit_test(a_gpu_has_no_short_messages),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
