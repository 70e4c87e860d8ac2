// SPDX-License-Identifier: BSD-3-Clause
// Settings that the program changes while it runs: by MPI_Pcontrol, by info keys, and by the
// functions of slimpi.h that take an option's name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "mpi/abi.h"

namespace slimpi::call {

// Carries out MPI_Pcontrol: level 0 switches slimpi off, 1 switches it on, and 2 writes the report.
void control(int level);

// Applies the slimpi_ keys of `info` as options of a communicator that was just made or changed.
// Returns the code for the program.
int take_info(mpi::Comm comm, mpi::Info info);

// Limits how long this rank waits in sums on a communicator, in seconds (0: no limit); ranks may
// have different limits. Returns false if slimpi cannot follow the communicator.
bool set_timeout(mpi::Comm comm, std::uint64_t seconds);

// Returns the line that says why an option of a communicator cannot have this value, or "" if it
// can.
std::string check_option(const char* name, const char* value);

// Returns the process's value of an option, "" if it is unset, or std::nullopt if there is no such
// option.
std::optional<std::string> option_value(const char* name);

}  // namespace slimpi::call
