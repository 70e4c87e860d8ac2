// SPDX-License-Identifier: BSD-3-Clause
// Why a call went to MPI unchanged: bypass_reasons.def as an enumeration and as rows.
#pragma once
#include <cstddef>
#include <iterator>

namespace slimpi {

enum class BypassReason {
#define SLIMPI_BYPASS_REASON(reason, name, meaning, advice) reason,
#include "observe/bypass_reasons.def"
#undef SLIMPI_BYPASS_REASON
};

struct BypassRow {
  const char* name;  // in the report
  const char* text;  // "left to MPI: NAME", in estimates and traces
  const char* meaning;
  const char* advice;  // the next step where most calls have this reason
};

// In the order of the enumerators.
inline constexpr BypassRow kBypassRows[] = {
#define SLIMPI_BYPASS_REASON(reason, name, meaning, advice) \
  {name, "left to MPI: " name, meaning, advice},
#include "observe/bypass_reasons.def"
#undef SLIMPI_BYPASS_REASON
};
inline constexpr std::size_t kBypassReasons = std::size(kBypassRows);

constexpr const BypassRow& row_of(BypassReason reason) {
  return kBypassRows[std::size_t(reason)];
}
constexpr const char* to_string(BypassReason reason) {
  return row_of(reason).name;
}

}  // namespace slimpi
