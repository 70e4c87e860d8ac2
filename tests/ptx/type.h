// SPDX-License-Identifier: BSD-3-Clause
// The types in opcodes and declarations: .u32, .f64, .pred.
#pragma once
#include <optional>
#include <string_view>

namespace slimpi::test::ptx {

struct Type {
  char kind;      // 'b', 'u', 's', 'f' as in PTX, 'p' for predicates
  unsigned bits;  // 1 for predicates
};

inline std::optional<Type> type_of(std::string_view word) {
  if (word == "pred") return Type{'p', 1};
  if (word.size() < 2 || std::string_view("busf").find(word[0]) == word.npos) return {};
  const std::string_view bits = word.substr(1);
  for (const unsigned known : {8u, 16u, 32u, 64u})
    if (bits == (known == 8 ? "8" : known == 16 ? "16" : known == 32 ? "32" : "64"))
      return Type{word[0], known};
  return {};
}

}  // namespace slimpi::test::ptx
