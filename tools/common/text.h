// SPDX-License-Identifier: BSD-3-Clause
// Text for people: lines of at most 100 columns, and aligned tables.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace slimpi::tools {

constexpr std::size_t kWidth = 100;

// Breaks `text` at blanks into lines of at most kWidth columns, each with a newline at its end. The
// first line begins with `first`; the others begin with `other` or, if that is "", with as many
// blanks as `first` has columns.
std::string wrapped(const std::string& first, std::string_view text, const std::string& other = "");

// A table for people: rows of cells below a heading in capitals, indented by two columns, with two
// blanks between columns. Text of the last column is wrapped.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace slimpi::tools
