// SPDX-License-Identifier: BSD-3-Clause
// The options' texts that name algorithms say what the algorithms' rows say.
#include <regex.h>

#include "algorithm/algorithm.h"
#include "options/config.h"
#include "tests/helper/base/unit_test.h"

namespace {

using slimpi::algorithm::Algorithm;

std::string text_of(const char* option) {
  for (const slimpi::OptionRow& row : slimpi::option_rows())
    if (std::string(row.name) == option) return row.meaning;
  return "";
}

// Searches as grep -E does. (std::regex takes three seconds to compile.)
bool finds(const std::string& pattern, const std::string& text) {
  regex_t compiled;
  assert_int_equal(regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0);
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

// Fails where the text of `option` does not name exactly the algorithms with the trait, each as
// `words` followed by its name; "" for any place.
void named(const char* option, const std::string& words, const auto& trait) {
  const std::string text = text_of(option);
  assert_true(!text.empty());
  for (const Algorithm& row : slimpi::algorithm::all()) {
    const bool found = finds(words + "\\b" + row.name + "\\b", text);
    if (found != bool(trait(row))) print_error("%s: %s\n", option, row.name);
    assert_int_equal(found, bool(trait(row)));
  }
}

UNIT_TEST(defaults_of_options) {
  named("rounding", "stochastic for ",
        [](const Algorithm& row) { return row.rounding == slimpi::Rounding::stochastic; });
  named("error_feedback", "", [](const Algorithm& row) { return row.error_feedback; });
  named("start", "", [](const Algorithm& row) { return row.start != 0; });
  for (const Algorithm& row : slimpi::algorithm::all())
    if (row.start != 0)
      assert_true(text_of("start").find(" " + std::to_string(row.start) + " for ") !=
                  std::string::npos);
}

UNIT_TEST(uses_of_options) {
  named("hierarchy", "", [](const Algorithm& row) { return row.flat; });
  named("peers", "", [](const Algorithm& row) { return row.talks_to_peers; });
}

}  // namespace
