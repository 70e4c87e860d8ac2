// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ptx/tokens.h"

#include <algorithm>
#include <cctype>

namespace slimpi::test::ptx {

namespace {

bool of_word(char c) {
  return std::isalnum((unsigned char)c) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

// The length of the token that `text` begins with; 0 for white space.
std::size_t length_of(std::string_view text) {
  if (std::isspace((unsigned char)text[0]) != 0) return 0;
  const bool negative =
      text[0] == '-' && text.size() > 1 && std::isdigit((unsigned char)text[1]) != 0;
  if (text[0] == '"') return std::min(text.find('"', 1), text.size() - 1) + 1;
  if (!negative && !of_word(text[0])) return 1;
  std::size_t length = 1;
  // A colon inside of a word is two of them: L1::no_allocate.
  for (;;)
    if (length < text.size() && of_word(text[length]))
      ++length;
    else if (text.substr(length, 2) == "::")
      length += 2;
    else
      return length;
}

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  std::vector<Token> tokens;
  unsigned line = 1;
  while (!source.empty()) {
    std::size_t length = length_of(source);
    if (source.substr(0, 2) == "//")
      length = std::min(source.find('\n'), source.size());
    else if (source.substr(0, 2) == "/*")
      length = std::min(source.find("*/"), source.size() - 2) + 2;
    else if (length != 0)
      tokens.push_back({source.substr(0, length), line});
    else
      length = 1;
    line += unsigned(std::count(source.begin(), source.begin() + length, '\n'));
    source.remove_prefix(length);
  }
  tokens.push_back({{}, line});
  return tokens;
}

}  // namespace slimpi::test::ptx
