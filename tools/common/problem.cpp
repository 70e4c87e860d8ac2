// SPDX-License-Identifier: BSD-3-Clause
#include "tools/common/problem.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "algorithm/policy.h"
#include "options/rules.h"

namespace slimpi::tools {

namespace {

// Returns why the file that a value of SLIMPI_ALGORITHM names cannot be opened; "" if it can be
// opened or if the value names none. `spelled` is what the error says before it.
std::string missing_file(const std::string& algorithm, const std::string& spelled) {
  const std::size_t colon = algorithm.find(':');
  if (colon == algorithm.npos || access(algorithm.c_str() + colon + 1, R_OK) == 0) return "";
  return spelled + algorithm + " cannot be used: " + std::strerror(errno);
}

}  // namespace

std::string problem(const Loaded& loaded) {
  const Config& config = loaded.config;
  if (!loaded.error.empty()) return loaded.error;
  Rules rules;
  if (config.rules)
    if (const std::string error = read_rules(*config.rules, config.written(Option::rules), rules);
        !error.empty())
      return error;
  if (const std::string error = algorithm::refuse(config, rules); !error.empty()) return error;
  std::string missing = missing_file(config.algorithm, config.written(Option::algorithm) + "=");
  for (const Rule& rule : rules)
    if (missing.empty()) missing = missing_file(rule.algorithm, rule.where + ": ");
  return missing;
}

}  // namespace slimpi::tools
