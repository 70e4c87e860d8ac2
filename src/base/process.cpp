// SPDX-License-Identifier: BSD-3-Clause
#include "base/process.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>

namespace slimpi {

namespace {
const std::chrono::steady_clock::time_point g_loaded = std::chrono::steady_clock::now();

char g_directory[4096];
const bool g_has_directory = getcwd(g_directory, sizeof g_directory) != nullptr;
}  // namespace

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
  // torchrun's variables come first, because torchrun may run inside another launcher's process.
  if (!environment_variable("TORCHELASTIC_RUN_ID").empty()) return environment_variable("RANK");
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (std::string rank = environment_variable(name); !rank.empty()) return rank;
  return environment_variable("WORLD_SIZE").empty() ? "" : environment_variable("RANK");
}

// Returns 0 ranks if some launcher's variable equals `world_size`: that launcher started
// MPI_COMM_WORLD, and a larger number belongs to an outer launcher, whose variables are still set.
// Slurm's variable proves nothing, because in a job step of one task a shell may start several
// ranks with another launcher, and under a wrong MPI each of them is a world of one rank.
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

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string process_command() {
  constexpr std::size_t kLongest = 2000;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string word; command.size() < kLongest && std::getline(file, word, '\0');)
    command += (command.empty() ? "" : " ") + shell_word(word);
  if (command.size() > kLongest) command = command.substr(0, kLongest) + "...";
  return command;
}

double seconds_since_load() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - g_loaded).count();
}

std::string path_from_start(const std::string& path) {
  if (path.empty() || path.front() == '/' || !g_has_directory) return path;
  return std::string(g_directory) + "/" + path;
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[32] = "";
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace slimpi
