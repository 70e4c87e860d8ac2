// SPDX-License-Identifier: BSD-3-Clause
// SLIMPI_RULES: which call gets which algorithm, by size and communicator.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slimpi::policy {

// One row: min_size max_size communicator algorithm bits. Sizes are bytes, max_size included.
struct Rule {
  std::uint64_t min_size = 0, max_size = UINT64_MAX;
  std::string communicator;  // pattern of the name that MPI_Comm_set_name gave; "*" any
  std::string algorithm;     // a name of SLIMPI_ALGORITHM
  std::optional<int> bits;
};

using Rules = std::vector<Rule>;

// Reads rows from text; `where` names it in errors. Returns "" or the error.
std::string parse_rules(std::string_view text, const std::string& where, Rules& rules);

// Reads the file that the option called `option` names. Returns "" or the error.
std::string read_rules(const std::string& path, const char* option, Rules& rules);

// The first row that holds for a buffer of `bytes` on the communicator called `name`; null if none.
const Rule* match(const Rules& rules, std::uint64_t bytes, const std::string& name);

// The rows that can hold on the communicator called `name`, as text: what ranks compare.
std::string describe(const Rules& rules, const std::string& name);

}  // namespace slimpi::policy
