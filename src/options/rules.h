// SPDX-License-Identifier: BSD-3-Clause
// The rules of SLIMPI_RULES: rows that choose the algorithm of a call by its size and communicator.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slimpi {

// One row of the file: min_size max_size communicator algorithm bits. Sizes are in bytes, both
// inclusive.
struct Rule {
  std::uint64_t min_size = 0, max_size = UINT64_MAX;
  std::string communicator;  // fnmatch pattern of its name (MPI_Comm_set_name); "*": any
  std::string algorithm;     // a value of SLIMPI_ALGORITHM
  std::optional<double> bits;
  std::string where;  // "FILE:LINE: the row", for the report
  // Whether the row has decided a call of this process; shared by the copies of a row.
  std::shared_ptr<std::atomic<bool>> matched = std::make_shared<std::atomic<bool>>(false);
};

using Rules = std::vector<Rule>;

// Appends the rows of `text` to `rules`. `where` is how errors name the text. Returns "" or the
// error.
std::string parse_rules(std::string_view text, const std::string& where, Rules& rules);

// Appends the rows of the file `path`, which the option `option` names. Returns "" or the error.
std::string read_rules(const std::string& path, const std::string& option, Rules& rules);

// Returns Rule::where of each row that has decided no call of this process.
std::vector<std::string> unmatched(const Rules& rules);

// Returns whether a row is for communicators called `name`.
bool is_for(const Rule& rule, const std::string& name);

// Returns the rows that can match on the communicator called `name`, without its pattern, as text
// for the ranks to compare.
std::string describe(const Rules& rules, const std::string& name);

}  // namespace slimpi
