// SPDX-License-Identifier: BSD-3-Clause
#include "options/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace slimpi {

Environment slimpi_environment() {
  Environment found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (text.starts_with("SLIMPI_") && equals != std::string_view::npos)
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (std::string rank = environment_variable(name); !rank.empty()) return rank;
  return "";
}

// A launcher inside another one's job leaves the outer one's variables in place, so one that agrees
// with MPI decides. Slurm's variable is that of the job step: a step is also what a shell runs in,
// under which another launcher starts the ranks.
LaunchedRanks launched_ranks(int world_size) {
  LaunchedRanks found;
  for (const char* name :
       {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const int ranks = std::atoi(environment_variable(name).c_str());
    const bool slurms = std::string_view(name).starts_with("SLURM");
    if (ranks == world_size && !slurms) return {};
    if (ranks > world_size && found.ranks == 0) found = {ranks, name};
  }
  return found;
}

bool is_first_process() {
  const std::string rank = launched_rank();
  return rank.empty() || rank == "0";
}

}  // namespace slimpi
