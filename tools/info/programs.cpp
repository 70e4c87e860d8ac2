// SPDX-License-Identifier: BSD-3-Clause
#include "tools/info/programs.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "observe/report.h"

namespace slimpi::info {

namespace {

// Looked for in PATH where the name has no slash. Returns only on failure; errno tells why.
void become(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
}

}  // namespace

std::string draw_topology(const std::string& file, const std::string& legend) {
  if (const std::string why = file == "-" ? "" : why_not_writable(file); !why.empty())
    return fmt::format("--svg: {} cannot be written: {}", file, why);
  // The first one needs no display; a distribution may have only the second.
  for (const char* const lstopo : {"lstopo-no-graphics", "lstopo"}) {
    become({lstopo, "--of", "svg", "--append-legend", legend, "--force", file});
    if (errno != ENOENT)
      return fmt::format("--svg: {} cannot be started: {}", lstopo, std::strerror(errno));
  }
  return "--svg needs hwloc's lstopo, which is not in PATH; install it (Debian: hwloc-nox)";
}

std::string sum_up_traces(const std::vector<std::string>& files) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string trace = self.parent_path() / "slimpi-trace";
  std::vector<std::string> words = {trace, "--"};
  words.insert(words.end(), files.begin(), files.end());
  become(words);
  return fmt::format("--trace: {} cannot be started: {}; reinstall slimpi's commands", trace,
                     std::strerror(errno));
}

}  // namespace slimpi::info
