// SPDX-License-Identifier: BSD-3-Clause
#include "tools/common/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace slimpi::tools {

std::string wrapped(const std::string& first, std::string_view text, const std::string& other) {
  std::string result = first, line;
  const std::string indent = other.empty() ? std::string(first.size(), ' ') : other;
  const auto flush = [&] {
    result += line;
    result.erase(result.find_last_not_of(' ') + 1);
    result += '\n';
    line.clear();
  };
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > kWidth) {
      flush();
      result += indent;
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  flush();
  return result;
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string result;
  for (const auto& row : rows_) {
    std::string line = "  ";
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    result += wrapped(line, row.back());
  }
  return result;
}

}  // namespace slimpi::tools
