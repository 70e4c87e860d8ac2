// SPDX-License-Identifier: BSD-3-Clause
// slimpi-run: starts a program with libslimpi.so preloaded and options set. It runs once per rank,
// so it does little: it checks the options, sets variables, and becomes the program.
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/place.h"
#include "config.h"
#include "tools/common/problem.h"
#include "tools/run/arguments.h"
#include "tools/run/program.h"

namespace {

using namespace slimpi;

constexpr int kBadUse = 2;

// Every rank finds the same mistake. The first says it and ends the job; the others wait a moment
// for that, and speak up only if the mistake was their own.
[[nodiscard]] int give_up(int status, const std::string& text) {
  if (!is_first_process()) sleep(1);
  std::fprintf(stderr, "slimpi-run: %s\n", text.c_str());
  return status;
}

// `preload` with `library` behind what it already names, once.
std::string appended(const std::string& preload, const std::string& library) {
  for (std::string_view rest = preload; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(" :"), rest.size());
    char* real = realpath(std::string(rest.substr(0, end)).c_str(), nullptr);
    char* ours = realpath(library.c_str(), nullptr);
    const bool same = real != nullptr && ours != nullptr && std::strcmp(real, ours) == 0;
    free(real);
    free(ours);
    if (same) return preload;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return preload.empty() ? library : preload + ":" + library;
}

// `word` as a shell reads it back.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

void print_command(const std::map<std::string, std::string>& variables, char** words) {
  std::string text = "env";
  for (const auto& [name, value] : variables) text += " " + name + "=" + quoted(value) + " \\\n ";
  for (; *words != nullptr; ++words) text += " " + quoted(*words);
  std::printf("%s\n", text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const tools::Arguments arguments = tools::parse_arguments(argc, argv);
  if (!arguments.error.empty()) return give_up(kBadUse, arguments.error);
  if (arguments.help) return std::printf("%s", tools::help_text().c_str()), 0;
  if (arguments.version) return std::puts("slimpi-run (slimpi) " PACKAGE_VERSION), 0;
  if (arguments.program >= argc)
    return give_up(kBadUse, "no program given; use slimpi-run [OPTION VALUE ...] PROGRAM");

  std::map<std::string, std::string> variables = arguments.variables;
  Environment environment = slimpi_environment();
  for (const auto& [name, value] : variables) environment[name] = value;
  if (const std::string error = tools::problem(load_config(environment)); !error.empty())
    return give_up(kBadUse, error);

  const std::string library = find_library();
  if (library.empty())
    return give_up(kBadUse, "libslimpi.so is not where this slimpi-run expects it; reinstall both");
  if (library.find_first_of(" :") != library.npos)
    return give_up(kBadUse, library +
                                " can not be preloaded: LD_PRELOAD can not name a file with "
                                "a blank or a colon; move slimpi to another directory");
  char** words = argv + arguments.program;
  const tools::Program program = tools::find_program(*words, environment_variable("PATH"));
  if (program.path.empty())
    return give_up(program.status, std::string(*words) + ": " + program.why);
  const std::string reason = tools::unreachable(program.path, library);
  if (!reason.empty() && is_first_process())
    std::fprintf(stderr, "slimpi-run: warning: %s %s, so slimpi can not be preloaded into it\n",
                 program.path.c_str(), reason.c_str());

  variables["LD_PRELOAD"] = appended(environment_variable("LD_PRELOAD"), library);
  if (arguments.dry_run) return print_command(variables, words), 0;
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  execvp(program.path.c_str(), words);
  return give_up(errno == ENOENT ? 127 : 126, program.path + ": " + std::strerror(errno));
}
