// SPDX-License-Identifier: BSD-3-Clause
// Included by a unit test of one file: CMocka, common headers, and a main() that runs every
// UNIT_TEST in the order of the file. In UNIT_TEST(name, setup, teardown) {...} both functions may
// be left out. GROUP_FIXTURES names the two for all tests of the file together.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/helper/base/cmocka_cxx.h"

namespace slimpi::test {

inline std::vector<CMUnitTest> g_tests;
inline CMFixtureFunction g_setup = nullptr, g_teardown = nullptr;

inline bool add_test(const char* name, CMUnitTestFunction run, CMFixtureFunction setup = nullptr,
                     CMFixtureFunction teardown = nullptr) {
  g_tests.push_back({name, run, setup, teardown, nullptr});
  return true;
}

// Splits a text at its bars and returns the parts.
inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '|') parts.emplace_back();
    if (c != '|') parts.back() += c;
  }
  return parts;
}

}  // namespace slimpi::test

#define UNIT_TEST(name, ...)                                            \
  void name(void**);                                                    \
  [[maybe_unused]] const bool added_##name =                            \
      ::slimpi::test::add_test(#name, name __VA_OPT__(, ) __VA_ARGS__); \
  void name(void**)

#define GROUP_FIXTURES(setup, teardown)          \
  [[maybe_unused]] const bool fixtures_are_set = \
      ((::slimpi::test::g_setup = setup), (::slimpi::test::g_teardown = teardown), true)

int main() {
  using namespace slimpi::test;
  return _cmocka_run_group_tests("tests", g_tests.data(), g_tests.size(), g_setup, g_teardown) != 0;
}
