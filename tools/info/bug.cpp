// SPDX-License-Identifier: BSD-3-Clause
// slimpi-info --bug: prints what a developer needs to know about a defect, without the names of
// people and hosts.
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/process.h"
#include "observe/report.h"
#include "tools/common/text.h"
#include "tools/info/info.h"

namespace slimpi::info {

using namespace tools;

namespace {

bool continues_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Replaces `name` by `by` wherever it occurs in `text` and is not part of a longer name.
void replace_name(std::string& text, const std::string& name, const std::string& by) {
  if (name.empty() || name == "/") return;
  for (std::size_t at = 0; (at = text.find(name, at)) != text.npos;) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || name[0] == '/' || !continues_name(text[at - 1]);
    if (begins && (end == text.size() || !continues_name(text[end]))) {
      text.replace(at, name.size(), by);
      at += by.size();
    } else {
      at = end;
    }
  }
}

// Replaces the directories of users under /home.
void replace_homes(std::string& text) {
  const std::string_view homes = "/home/";
  for (std::size_t at = 0; (at = text.find(homes, at)) != text.npos; ++at) {
    std::size_t end = at + homes.size();
    while (end < text.size() && (continues_name(text[end]) || text[end] == '-' || text[end] == '.'))
      ++end;
    text.replace(at, end - at, "~");
  }
}

// Returns `text` without the name of this machine, and without the user's name and home directory.
std::string without_names(std::string text) {
  const passwd* const user = getpwuid(getuid());
  replace_name(text, environment_variable("HOME"), "~");
  if (user != nullptr && user->pw_dir != nullptr) replace_name(text, user->pw_dir, "~");
  replace_homes(text);
  if (user != nullptr) replace_name(text, user->pw_name, "USER");
  for (const char* name : {"USER", "LOGNAME"})
    replace_name(text, environment_variable(name), "USER");
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    const std::string full = host.data();
    replace_name(text, full, "HOST");
    replace_name(text, full.substr(0, full.find('.')), "HOST");
  }
  return text;
}

// Returns the first line with a digit that the command prints, because this line has the version;
// "" if there is none.
std::string version_line(const char* command) {
  std::string line;
  std::FILE* const output = popen(command, "r");
  if (output == nullptr) return "";
  std::array<char, 500> read{};
  while (std::fgets(read.data(), int(read.size()), output) != nullptr)
    if (line.empty() && std::string_view(read.data()).find_first_of("0123456789") != line.npos)
      line = read.data();
  pclose(output);
  const std::size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \n");
  return first == line.npos ? "" : line.substr(first, last - first + 1);
}

// Returns the value of the first line of a file that has the form `key = value` or `key: value`,
// for this key.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) {
      const std::size_t first = line.find_first_not_of("\t =:\"", key.size());
      const std::size_t last = line.find_last_not_of('"');
      return first == line.npos ? "" : line.substr(first, last - first + 1);
    }
  return "";
}

std::string launcher_text() {
  struct Row {
    const char *launcher, *variable;
  };
  std::string text;
  for (const auto& [launcher, variable] :
       {Row{"torchrun", "TORCHELASTIC_RUN_ID"}, Row{"Open MPI", "OMPI_COMM_WORLD_SIZE"},
        Row{"Hydra or another of PMI", "PMI_RANK"}, Row{"PMIx", "PMIX_RANK"},
        Row{"Slurm", "SLURM_JOB_ID"}})
    if (!environment_variable(variable).empty())
      text += (text.empty() ? "" : ", ") + std::string(launcher);
  return text.empty() ? "none: start slimpi-info by the launcher of the job" : text;
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "not known" : text;
}

std::string options_that_are_set(const Config& config) {
  std::string text;
  for (std::size_t i = 0; i < option_rows().size(); ++i)
    if (const Config::Given& given = config.given[i]; given.source != Source::built_in)
      text += fmt::format("  {}={} ({})\n", option_rows()[i].variable, given.text,
                          to_string(given.source));
  return text.empty() ? "  none\n" : text;
}

// Returns the report in `file`, the value of SLIMPI_REPORT, or a line that says why there is none.
std::string last_report(const std::string& file) {
  if (file.empty() || is_stream(file))
    return "  none: run the job with SLIMPI_REPORT=report.json, and this command, too\n";
  std::ifstream stream(path_from_start(file));
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) return "  SLIMPI_REPORT names a file that cannot be read\n";
  return is_text(file) ? text.str() : report_without_names(text.str());
}

}  // namespace

std::string bug_text(const Loaded& loaded, const std::string& problem,
                     const topology::Topology* topology) {
  utsname system{};
  uname(&system);
  std::string text = build_text(build());
  text += wrapped("  mpiexec     ", or_unknown(version_line("mpiexec --version 2>/dev/null")));
  text += wrapped("  launcher    ", launcher_text());
  text += wrapped("  system      ",
                  fmt::format("{}; {} {} {}; glibc {}",
                              or_unknown(value_in("/etc/os-release", "PRETTY_NAME")),
                              system.sysname, system.release, system.machine,
                              gnu_get_libc_version()));
  text += wrapped("  processor   ", or_unknown(value_in("/proc/cpuinfo", "model name")));
  text += "\noptions that are set\n" + options_that_are_set(loaded.config);
  for (const std::string& warning : loaded.warnings) text += wrapped("  ", warning);
  if (!problem.empty()) text += wrapped("  ", problem);
  if (topology != nullptr) text += "\n" + topology_text(*topology);
  text += "\nlast report (SLIMPI_REPORT)\n" + last_report(loaded.config.given[std::size_t(
                                                  Option::report)].text);
  return without_names(text);
}

}  // namespace slimpi::info
