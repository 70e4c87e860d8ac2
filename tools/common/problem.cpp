// SPDX-License-Identifier: BSD-3-Clause
#include "tools/common/problem.h"

#include "kernels/cpu/cpu.h"
#include "policy/policy.h"
#include "policy/rules.h"

namespace slimpi::tools {

std::string problem(const Loaded& loaded) {
  const Config& config = loaded.config;
  if (!loaded.error.empty()) return loaded.error;
  policy::Rules rules;
  if (config.rules)
    if (const std::string error = policy::read_rules(*config.rules, "SLIMPI_RULES", rules);
        !error.empty())
      return error;
  if (const std::string error = policy::refuse(config, rules); !error.empty()) return error;
  if (kernels::cpu_kernels(config.cpu) == nullptr)
    return "SLIMPI_CPU=" + config.given[std::size_t(Option::cpu)].text +
           " cannot be used: this machine or build lacks it; SLIMPI_CPU=auto chooses";
  return "";
}

}  // namespace slimpi::tools
