// SPDX-License-Identifier: BSD-3-Clause
// The rows of src/options/algorithms.def.
#include "algorithm/algorithm.h"

namespace slimpi::algorithm {

namespace {
constexpr Algorithm kTable[] = {
#define SLIMPI_ALGORITHM(word, after, does, ...) \
  {.id = AlgorithmId::word,                      \
   .name = #word,                                \
   .argument = after,                            \
   .functions = &functions::does,                \
   __VA_ARGS__},
#include "options/algorithms.def"
#undef SLIMPI_ALGORITHM
};
}  // namespace

const Algorithm* find(std::string_view value) {
  const std::string_view name = value.substr(0, value.find(':'));
  for (const Algorithm& row : kTable)
    if (name == row.name) return &row;
  return nullptr;
}

std::span<const Algorithm> all() {
  return kTable;
}

}  // namespace slimpi::algorithm
