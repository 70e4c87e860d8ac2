// SPDX-License-Identifier: BSD-3-Clause
// The process: its environment, its launcher, and its command. Only process.cpp reads the real
// environment.
#pragma once
#include <map>
#include <string>

namespace slimpi {

using Environment = std::map<std::string, std::string>;

// Returns every variable of this process whose name begins with SLIMPI_.
Environment slimpi_environment();

// Returns a variable of any name; empty if it is not set.
std::string environment_variable(const char* name);

// Returns this process's rank from the launcher's variables, before MPI has started; empty if they
// do not give a rank.
std::string launched_rank();

// The result of launched_ranks(): how many ranks the launcher started, by the launcher's variables,
// if that is more than `world_size` (the ranks of MPI_COMM_WORLD); otherwise 0.
struct LaunchedRanks {
  int ranks = 0;
  std::string variable;  // the launcher's variable that has the number
};
LaunchedRanks launched_ranks(int world_size);

// Returns whether this is the first process of its job, by the launcher's variables; true if they
// do not give a rank. For messages that one process prints for all before MPI has started.
bool is_first_process();

// Returns the command line of the process, as a shell reads it back; cut after 2000 characters.
std::string process_command();

// Returns the seconds since this library was loaded. A preloaded library is loaded when the program
// begins.
double seconds_since_load();

// Returns a relative `path` as a path in the directory in which the process was when this library
// was loaded, because the program may have changed its directory since. Returns `path` unchanged if
// it is absolute or that directory is unknown.
std::string path_from_start(const std::string& path);

// Returns the date and time, such as "2026-11-22T10:00:00Z".
std::string date_now();

// Returns `word`, quoted if needed, so that a shell reads it back as one word.
std::string shell_word(const std::string& word);

}  // namespace slimpi
