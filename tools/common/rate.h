// SPDX-License-Identifier: BSD-3-Clause
// The rate of a network as people write it.
#pragma once
#include <string_view>

namespace slimpi::tools {

// Bits per second with a unit, powers of 1000: 1gbit, 500mbit, 2.5G. False for anything else, also
// for a number without a unit, which could mean anything.
bool parse_rate(std::string_view text, double& bits_per_second);

}  // namespace slimpi::tools
