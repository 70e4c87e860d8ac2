// SPDX-License-Identifier: BSD-3-Clause
// The process's environment, as a value. Only environment.cpp reads the real one.
#pragma once
#include <map>
#include <string>

namespace slimpi {

using Environment = std::map<std::string, std::string>;

// Every variable of this process whose name begins with SLIMPI_.
Environment slimpi_environment();

// One variable of any name; empty if it is not set.
std::string environment_variable(const char* name);

// This process's rank from the launcher's variables, before MPI has started; empty where they do
// not give it.
std::string launched_rank();

// How many ranks the launcher started, where its variables say more than `world_size`; else 0
// ranks.
struct LaunchedRanks {
  int ranks = 0;
  std::string variable;  // the one that says so
};
LaunchedRanks launched_ranks(int world_size);

// Whether this is the first process of its job, from the launcher's variables. True where they do
// not give it. For messages that one process prints for all before MPI has started.
bool is_first_process();

}  // namespace slimpi
