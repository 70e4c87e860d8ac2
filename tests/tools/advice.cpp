// SPDX-License-Identifier: BSD-3-Clause
// The reason that the advice of an estimate is about.
#include "tools/estimate/estimate.h"

#include "tests/helper/cmocka_cxx.h"

using namespace slimpi;
using namespace slimpi::tools;

namespace {

EstimateRow row(std::uint64_t calls, std::uint64_t bytes, std::optional<BypassReason> reason) {
  EstimateRow made;
  made.calls = calls;
  made.bytes_in = bytes;
  made.reason = reason;
  return made;
}

void by_bytes_not_by_calls(void**) {
  Prediction estimate;
  assert_false(dominant_reason(estimate).has_value());
  estimate.rows = {row(1, 1000, std::nullopt), row(90, 100, BypassReason::small)};
  assert_false(dominant_reason(estimate).has_value());
  estimate.rows.push_back(row(1, 600, BypassReason::datatype));
  assert_false(dominant_reason(estimate).has_value());
  estimate.rows.push_back(row(1, 600, BypassReason::datatype));
  assert_true(dominant_reason(estimate) == BypassReason::datatype);
  estimate.rows.push_back(row(1, 2000, BypassReason::nonblocking));
  assert_true(dominant_reason(estimate) == BypassReason::nonblocking);
}

void of_empty_calls_by_calls(void**) {
  Prediction estimate;
  estimate.rows = {row(3, 0, BypassReason::op), row(2, 0, BypassReason::datatype)};
  assert_true(dominant_reason(estimate) == BypassReason::op);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(by_bytes_not_by_calls),
      cmocka_unit_test(of_empty_calls_by_calls),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
