// SPDX-License-Identifier: BSD-3-Clause
// The process as its launcher started it: environment, rank, command and directory. Only
// process.cpp reads the real environment.
#pragma once
#include <map>
#include <string>

namespace slimpi {

using Environment = std::map<std::string, std::string>;

// Returns every variable of this process whose name begins with SLIMPI_.
Environment slimpi_environment();

// Returns a variable of any name, or "" if it is not set.
std::string environment_variable(const char* name);

// Returns this process's rank from the launcher's variables, for use before MPI has started.
// Returns "" if the variables do not tell.
std::string launched_rank();

// How many ranks the launcher started, as its variables say, if that is more than `world_size`, the
// ranks of MPI_COMM_WORLD. Otherwise `ranks` is 0.
struct LaunchedRanks {
  int ranks = 0;
  std::string variable;  // the variable that says so
};
LaunchedRanks launched_ranks(int world_size);

// Returns whether this is the first process of its job, or true if the launcher's variables do not
// tell. Used for messages that one process prints for all before MPI has started.
bool is_first_process();

// Returns the command line, quoted for a shell, and cut after 2000 characters.
std::string process_command();

// Returns the seconds since this library was loaded; a preloaded library is loaded when the program
// begins.
double seconds_since_load();

// Resolves a relative `path` against the directory in which the process was when this library was
// loaded, because the program may have changed directory since. Returns `path` itself if it is
// absolute or that directory is unknown.
std::string path_from_start(const std::string& path);

// Returns the current date and time, such as "2026-11-22T10:00:00Z".
std::string date_now();

// Returns `word`, quoted if a shell needs that to read it back as one word.
std::string shell_word(const std::string& word);

}  // namespace slimpi
