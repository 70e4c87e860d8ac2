// SPDX-License-Identifier: BSD-3-Clause
// The words of PTX.
#pragma once
#include <string_view>
#include <vector>

namespace slimpi::test::ptx {

struct Token {
  std::string_view text;  // in the source
  unsigned line;
};

// The source's words, numbers, strings and single characters, without comments; the last token is
// empty.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace slimpi::test::ptx
