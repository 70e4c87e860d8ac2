// SPDX-License-Identifier: BSD-3-Clause
// The names of algorithms.def, for layers that do not know what an algorithm does.
#pragma once
#include <cstddef>
#include <iterator>

namespace slimpi {

enum class AlgorithmId : std::size_t {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) name,
#include "options/algorithms.def"
#undef SLIMPI_ALGORITHM
};

struct AlgorithmWord {
  const char* name;
  const char* argument;  // "" or ":/ABSOLUTE/PATH.so"
};

// In the order of the enumerators.
inline constexpr AlgorithmWord kAlgorithmWords[] = {
#define SLIMPI_ALGORITHM(name, argument, functions, ...) {#name, argument},
#include "options/algorithms.def"
#undef SLIMPI_ALGORITHM
};
inline constexpr std::size_t kAlgorithms = std::size(kAlgorithmWords);

constexpr const char* to_string(AlgorithmId id) {
  return kAlgorithmWords[std::size_t(id)].name;
}

}  // namespace slimpi
