// SPDX-License-Identifier: BSD-3-Clause
// Rates of networks as people write them.
#include "tools/common/rate.h"

#include <utility>

#include "tests/helper/unit_test.h"

using slimpi::tools::parse_rate;

namespace {

UNIT_TEST(rates) {
  for (const auto& [text, expected] : {std::pair{"1gbit", 1e9},
                                       {" 2.5G ", 2.5e9},
                                       {"100Mbit", 1e8},
                                       {"56k", 56e3},
                                       {"1e9bit", 1e9}}) {
    double value = 0;
    if (!parse_rate(text, value) || value != expected) fail_msg("'%s' was misread", text);
  }
}

UNIT_TEST(other_texts) {
  for (const char* bad : {"", "10", "fast", "0gbit", "-1gbit", "infgbit", "nangbit", "1 gbit",
                          "1gb", "1gib", "1gbit/s", "gbit", "1e999gbit"}) {
    double value = 7;
    if (parse_rate(bad, value) || value != 7) fail_msg("'%s' was accepted", bad);
  }
}

}  // namespace
