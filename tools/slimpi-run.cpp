// SPDX-License-Identifier: BSD-3-Clause
// slimpi-run: starts a program with libslimpi.so preloaded and options set. Because it runs once
// per rank, it does little: it checks the options, sets environment variables, and becomes the
// program.
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/plugin.h"
#include "base/process.h"
#include "config.h"
#include "tools/common/output.h"
#include "tools/common/problem.h"
#include "tools/run/arguments.h"
#include "tools/run/program.h"
#include "tools/run/stand_in.h"

namespace {

using namespace slimpi;

constexpr int kBadUse = 2;

// Returns whether this process is the one that prints `text`. All ranks of a host find the same
// mistake, and some launchers do not end the other ranks when the first one fails, so only one of
// them prints it. The process that prints holds a name that is made from the text; the name is free
// again when the process ends.
bool holds_the_word(const std::string& text) {
  const std::string name = "slimpi-run " + std::to_string(getppid()) + " " +
                           std::to_string(std::hash<std::string>{}(text));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An address that begins with a zero byte is an abstract address of Linux, and no file.
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const int holder = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  return holder < 0 || bind(holder, reinterpret_cast<sockaddr*>(&address), size) == 0 ||
         errno != EADDRINUSE;
}

// Prints `text` on one rank of a host and returns `status`. The first rank prints at once. The
// others wait a second and then print only if the first has not printed the same text. A rank that
// printed stays for two seconds, so that the others find its name taken.
[[nodiscard]] int give_up(int status, const std::string& text) {
  const bool launched = !launched_rank().empty();
  if (!is_first_process()) sleep(1);
  if (launched && !holds_the_word(text)) return status;
  std::fprintf(stderr, "slimpi-run: %s\n", text.c_str());
  if (launched) sleep(2);
  return status;
}

// Returns the value `preload` of LD_PRELOAD with `library` appended, unless it already names that
// library.
std::string appended(const std::string& preload, const std::string& library) {
  for (std::string_view rest = preload; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(" :"), rest.size());
    std::error_code error;
    if (std::filesystem::equivalent(rest.substr(0, end), library, error)) return preload;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return preload.empty() ? library : preload + ":" + library;
}

std::string command(const std::map<std::string, std::string>& variables, char** words) {
  std::string text = "env";
  for (const auto& [name, value] : variables)
    text += " " + name + "=" + shell_word(value) + " \\\n ";
  for (; *words != nullptr; ++words) text += " " + shell_word(*words);
  return text + "\n";
}

int say(const std::string& text) {
  tools::put(text);
  return tools::finish_output("slimpi-run", 0);
}

}  // namespace

int main(int argc, char** argv) {
  const tools::Arguments arguments = tools::parse_arguments(argc, argv);
  if (!arguments.error.empty()) return give_up(kBadUse, arguments.error);
  if (arguments.help) return say(tools::help_text());
  if (arguments.version) return say("slimpi-run (slimpi) " PACKAGE_VERSION "\n");
  if (arguments.program >= argc)
    return give_up(kBadUse, "no program given; use slimpi-run [OPTION VALUE ...] PROGRAM");

  std::map<std::string, std::string> variables = arguments.variables;
  Environment environment = slimpi_environment();
  for (const auto& [name, value] : variables) environment[name] = value;
  const Loaded loaded = load_config(environment);
  if (const std::string error = tools::problem(loaded); !error.empty())
    return give_up(kBadUse, error);

  if (arguments.compare) {
    const Config& config = loaded.config;
    const char* why = config.estimate             ? "SLIMPI_ESTIMATE is set"
                      : config.algorithm == "off" ? "SLIMPI_ALGORITHM is off"
                      : config.is_set(Option::verify) && config.verify == 0 ? "SLIMPI_VERIFY is 0"
                                                                            : nullptr;
    if (why != nullptr)
      return give_up(kBadUse, std::string("--compare has nothing to compare: ") + why);
    if (!config.is_set(Option::verify)) variables["SLIMPI_VERIFY"] = "1";
    if (!config.is_set(Option::report)) variables["SLIMPI_REPORT"] = "stderr";
  }

  const std::string library = find_library();
  if (library.empty())
    return give_up(kBadUse, "libslimpi.so is not where this slimpi-run expects it; reinstall both");
  if (library.find_first_of(" :") != library.npos)
    return give_up(kBadUse, library +
                                " cannot be preloaded: LD_PRELOAD cannot name a file with "
                                "a blank or a colon; move slimpi to another directory");
  char** words = argv + arguments.program;
  const tools::Program program = tools::find_program(*words, environment_variable("PATH"));
  if (program.path.empty())
    return give_up(program.status, std::string(*words) + ": " + program.why);
  bool starts = true;
  const std::string reason = tools::unreachable(program.path, library, &starts);
  if (!reason.empty() && is_first_process())
    std::fprintf(stderr, "slimpi-run: warning: %s %s, so slimpi cannot be preloaded into it\n",
                 program.path.c_str(), reason.c_str());

  if (starts) variables["LD_PRELOAD"] = appended(environment_variable("LD_PRELOAD"), library);
  if (arguments.stand_in) {
    const tools::StandIn stand_in = tools::make_stand_in(library);
    if (!stand_in.error.empty()) return give_up(kBadUse, stand_in.error);
    const std::string path = environment_variable("LD_LIBRARY_PATH");
    variables["LD_LIBRARY_PATH"] = stand_in.directory + (path.empty() ? "" : ":" + path);
    variables["SLIMPIRUN_STAND_IN"] = stand_in.directory;  // the library warns if it is not used
  }
  if (arguments.torch) {
    const std::string startup = find_plugin("startup");
    if (startup.empty())
      return give_up(kBadUse,
                     "--torch: slimpi's Python files are not beside libslimpi.so; reinstall both");
    const std::string path = environment_variable("PYTHONPATH");
    variables["PYTHONPATH"] = startup + (path.empty() ? "" : ":" + path);
    variables["SLIMPIRUN_TORCH"] = "1";
    if (!arguments.torch_sums.empty()) variables["SLIMPIRUN_TORCH_SUMS"] = arguments.torch_sums;
    if (!arguments.torch_weights.empty())
      variables["SLIMPIRUN_TORCH_WEIGHTS"] = arguments.torch_weights;
  }
  if (arguments.dry_run) {
    // A dry run prints the warnings here. If the program is started, the library prints them, once
    // for all ranks.
    for (const std::string& warning : loaded.warnings)
      std::fprintf(stderr, "slimpi-run: warning: %s\n", warning.c_str());
    return say(command(variables, words));
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  // The program keeps the number of this process. By the number, the library tells the program from
  // processes that the program starts.
  setenv("SLIMPIRUN_PID", std::to_string(getpid()).c_str(), 1);
  execvp(program.path.c_str(), words);
  return give_up(errno == ENOENT ? 127 : 126, program.path + ": " + std::strerror(errno));
}
