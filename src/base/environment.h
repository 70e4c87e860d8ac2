// SPDX-License-Identifier: BSD-3-Clause
// The process's environment, as a value. environment.cpp is the only file that looks at the real
// one.
#pragma once
#include <map>
#include <string>

namespace slimpi {

using Environment = std::map<std::string, std::string>;

// Every variable of this process whose name begins with SLIMPI_.
Environment slimpi_environment();

// One variable of any name; empty if it is not set.
std::string environment_variable(const char* name);

// This process's rank as the launcher's variables tell it, before MPI has started; empty where they
// do not.
std::string launched_rank();

// How many ranks of its job run on this process's machine, as far as the launcher's variables tell;
// 0 where they do not.
int launched_ranks_here();

// Is this the first process of its job, as far as the launcher's variables tell? True where they do
// not. For what one process should say for all before MPI has started.
bool is_first_process();

}  // namespace slimpi
