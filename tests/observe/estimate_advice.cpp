// SPDX-License-Identifier: BSD-3-Clause
// The reason that the advice of an estimate is about.
#include "observe/estimate.h"

#include "tests/helper/base/unit_test.h"

using namespace slimpi;

namespace {

CountedCalls row(std::uint64_t calls, std::uint64_t bytes, std::optional<BypassReason> reason) {
  CountedCalls made;
  made.calls = calls;
  made.bytes = bytes;
  made.reason = reason;
  return made;
}

UNIT_TEST(by_bytes_not_by_calls) {
  Estimate estimate;
  assert_false(dominant_reason(estimate).has_value());
  estimate.counted = {row(1, 1000, std::nullopt), row(90, 100, BypassReason::small)};
  assert_false(dominant_reason(estimate).has_value());
  estimate.counted.push_back(row(1, 600, BypassReason::datatype));
  assert_false(dominant_reason(estimate).has_value());
  estimate.counted.push_back(row(1, 600, BypassReason::datatype));
  assert_true(dominant_reason(estimate) == BypassReason::datatype);
  estimate.counted.push_back(row(1, 2000, BypassReason::nonblocking));
  assert_true(dominant_reason(estimate) == BypassReason::nonblocking);
}

UNIT_TEST(of_empty_calls_by_calls) {
  Estimate estimate;
  estimate.counted = {row(3, 0, BypassReason::op), row(2, 0, BypassReason::datatype)};
  assert_true(dominant_reason(estimate) == BypassReason::op);
}

}  // namespace
