// SPDX-License-Identifier: BSD-3-Clause
// The process: its environment, its launcher, and what it was started with. Only process.cpp reads
// the real environment.
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

// The words that the process was started with, as a shell reads them back; cut after 2000
// characters.
std::string process_command();

// Seconds since this library was loaded: for a preloaded library, since the program began.
double seconds_since_load();

// `path`, where it is relative: in the directory that the process was in when this library was
// loaded. The program may have changed directories since. Unchanged where that directory is
// unknown.
std::string path_from_start(const std::string& path);

// "2026-11-22T10:00:00Z"
std::string date_now();

// `word` as a shell reads it back.
std::string shell_word(const std::string& word);

}  // namespace slimpi
