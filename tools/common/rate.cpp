// SPDX-License-Identifier: BSD-3-Clause
#include "tools/common/rate.h"

#include <charconv>
#include <cmath>

#include "options/option_types.h"

namespace slimpi::tools {

bool parse_rate(std::string_view text, double& bits_per_second) {
  const std::string lower = lower_case(text);
  double parsed = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), parsed);
  std::string_view unit(end, std::size_t(lower.data() + lower.size() - end));
  if (error != std::errc() || unit.empty() || !(parsed > 0) || !std::isfinite(parsed)) return false;
  if (unit.ends_with("bit")) unit.remove_suffix(3);
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t power = unit.empty() ? 0 : kPrefixes.find(unit) + 1;
  if (unit.size() > 1 || (power == 0 && !unit.empty())) return false;
  for (std::size_t i = 0; i < power; ++i) parsed *= 1000;
  bits_per_second = parsed;
  return true;
}

}  // namespace slimpi::tools
