// SPDX-License-Identifier: BSD-3-Clause
// What the program says while it runs: MPI_Pcontrol, info keys, options by name.
#pragma once
#include <optional>
#include <string>

#include "mpi/abi.h"

namespace slimpi::call {

// MPI_Pcontrol: 0 off, 1 on, 2 writes the report.
void control(int level);

// Reads the slimpi_ keys of `info` as options of a communicator that was just made or changed.
// Returns the code that the program gets.
int take_info(mpi::Comm comm, mpi::Info info);

// "", or the line that says why a communicator's option cannot have this value.
std::string check_option(const char* name, const char* value);

// The process's value of an option, "" where it is unset; empty where there is no such option.
std::optional<std::string> option_value(const char* name);

}  // namespace slimpi::call
