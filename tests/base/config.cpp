// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.h"

#include "tests/helper/cmocka_cxx.h"

using namespace slimpi;

namespace {

void defaults(void**) {
  const Loaded loaded = load_config({});
  assert_string_equal(loaded.error.c_str(), "");
  assert_int_equal(loaded.config.bits, 8);
  assert_int_equal(loaded.config.bucket, 2048);
  assert_int_equal(loaded.config.min_size, 65536);
  assert_false(loaded.config.rounding.has_value());
  assert_string_equal(loaded.config.algorithm.c_str(), "bytegrad");
}

void bad_value_names_option_value_and_accepted(void**) {
  const Loaded loaded = load_config({{"SLIMPI_BITS", "9"}});
  assert_string_equal(loaded.error.c_str(), "SLIMPI_BITS=9 can not be used; accepted: 1 to 8");
}

void misspelt_name_is_one_warning(void**) {
  const Loaded loaded = load_config({{"SLIMPI_BIT", "4"}});
  assert_string_equal(loaded.error.c_str(), "");
  assert_int_equal(loaded.warnings.size(), 1);
  assert_string_equal(loaded.warnings[0].c_str(),
                      "SLIMPI_BIT is not an option of slimpi; did you mean SLIMPI_BITS?");
  assert_string_not_equal(load_config({{"SLIMPI_BIT", "4"}, {"SLIMPI_STRICT", "1"}}).error.c_str(),
                          "");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(defaults),
      cmocka_unit_test(bad_value_names_option_value_and_accepted),
      cmocka_unit_test(misspelt_name_is_one_warning),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
}
