// SPDX-License-Identifier: BSD-3-Clause
// slimpi-info: prints the version and build of slimpi, the values of its options, and the topology
// of the machine.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/process.h"
#include "observe/report.h"
#include "tools/common/command_line.h"
#include "tools/common/output.h"
#include "tools/common/problem.h"
#include "tools/common/text.h"
#include "tools/info/attach.h"
#include "tools/info/info.h"

namespace {

using namespace slimpi;

constexpr int kBadUse = 2;

struct Wanted {
  bool version = false, options = false, documented = false, topology = false;
  bool json = false, list = false, reasons = false, mdoc = false, bug = false;
  std::string pid, svg;
  std::vector<std::string> traces;
};

// Prints to stderr the warnings and the error that a job with these options would print. Returns
// whether the options can be used.
bool say_problems(const Loaded& loaded) {
  for (const std::string& warning : loaded.warnings)
    fmt::print(stderr, "slimpi-info: warning: {}\n", warning);
  const std::string problem = tools::problem(loaded);
  if (!problem.empty()) fmt::print(stderr, "slimpi-info: {}\n", problem);
  return problem.empty();
}

int tell(const Wanted& wanted) {
  std::string text;
  int status = 0;
  const auto part = [&](const std::string& more) { text += (text.empty() ? "" : "\n") + more; };
  const Loaded loaded = load_config(slimpi_environment());
  if ((wanted.version || wanted.options) && !say_problems(loaded)) status = kBadUse;
  const info::Build build = info::build();
  if (wanted.version)
    part(info::build_text(build) + "  defects     slimpi-info --bug prints what a report needs\n");
  if (wanted.options) part(info::options_text(loaded.config, wanted.documented));
  topology::Topology found;
  if (wanted.topology) {
    if (load(found, topology::DeviceNames::pci_database) == Status::ok) {
      part(info::topology_text(found));
    } else {
      part(tools::wrapped("", fmt::format("node {}: its topology is not known, because {}.",
                                          found.hostname, failure_text())));
      status = status == 0 ? 1 : status;
    }
  }
  if (wanted.json)
    text =
        info::to_json(wanted.version ? &build : nullptr, wanted.options ? &loaded.config : nullptr,
                      wanted.topology ? &found : nullptr);
  tools::put(text);
  return status;
}

int tell_for_bug() {
  const Loaded loaded = load_config(slimpi_environment());
  topology::Topology found;
  const bool known = load(found, topology::DeviceNames::pci_database) == Status::ok;
  tools::put(info::bug_text(loaded, tools::problem(loaded), known ? &found : nullptr));
  return 0;
}

int failed(const std::string& problem) {
  fmt::print(stderr, "slimpi-info: {}\n", problem);
  return 1;
}

// Replaces this process by the program words[0], whose output and exit status are then those of
// slimpi-info. A name without a slash is looked for in PATH. Returns only on failure, with the
// reason in errno.
void become(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
}

// Draws a picture of this machine with lstopo of hwloc. The legend names the rank that would lead
// the node.
int draw(const std::string& file) {
  topology::Topology found;
  const bool known = load(found, topology::DeviceNames::pci_database) == Status::ok;
  const std::string legend =
      known ? info::leader_text(found) : "The lowest rank of the node leads.";
  if (const std::string why = file == "-" ? "" : why_not_writable(file); !why.empty())
    return failed(fmt::format("--svg: {} cannot be written: {}", file, why));
  // lstopo-no-graphics is tried first because it needs no display, but some distributions have only
  // lstopo.
  for (const char* const lstopo : {"lstopo-no-graphics", "lstopo"}) {
    become({lstopo, "--of", "svg", "--append-legend", legend, "--force", file});
    if (errno != ENOENT)
      return failed(fmt::format("--svg: {} cannot be started: {}", lstopo, std::strerror(errno)));
  }
  return failed("--svg needs hwloc's lstopo, which is not in PATH; install it (Debian: hwloc-nox)");
}

// Sums up traces with the slimpi-trace of this installation.
int sum_up_traces(const std::vector<std::string>& files) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string trace = self.parent_path() / "slimpi-trace";
  std::vector<std::string> words = {trace, "--"};
  words.insert(words.end(), files.begin(), files.end());
  become(words);
  return failed(fmt::format("--trace: {} cannot be started: {}; reinstall slimpi's commands", trace,
                            std::strerror(errno)));
}

// Prints what a running rank is doing and returns the exit status: 1, after a line on standard
// error, if the process cannot be read.
int tell_of_process(const std::string& pid, bool json) {
  info::Attached attached;
  const std::string problem = info::attach(pid, attached);
  if (!problem.empty()) return failed(problem);
  tools::put(json ? info::to_json(attached) : info::attached_text(attached));
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Tells what this slimpi is, what its options are set to, and what the machine looks like.\n"
      "Without an option: -v and -c.",
      "slimpi-info");
  app.get_formatter()->column_width(18);
  app.set_help_flag("-h,--help", "print this and exit");
  Wanted wanted;
  app.add_flag("-v,--version", wanted.version, "version and build, and what works on this machine");
  app.add_flag("-c,--config", wanted.options, "every option, its value and where that comes from");
  app.add_flag("-f,--full", wanted.documented,
               "with -c: meaning and accepted values, too, as a file for SLIMPI_CONFIG");
  app.add_flag("-t,--topology", wanted.topology,
               "NUMA nodes, GPUs and NICs of this machine, and who leads");
  app.add_flag("--bug", wanted.bug,
               "what a report of a defect needs, without names of hosts and users");
  app.add_option("--attach", wanted.pid, "what the rank with this process id does, or waits for")
      ->option_text("PID");
  app.add_option("--svg", wanted.svg, "draw this machine with hwloc's lstopo; - is standard output")
      ->option_text("FILE");
  CLI::Option* const trace =
      app.add_option("--trace", wanted.traces, "sum up traces of a job with slimpi-trace")
          ->option_text("FILE ...");
  app.add_flag("--json", wanted.json, "write JSON")->excludes(trace)->option_text(" ");
  app.add_flag("--options", wanted.list, "every option's name and accepted values, for scripts");
  app.add_flag("--reasons", wanted.reasons,
               "every reason why a call is left to MPI, and its meaning, for scripts");
  app.add_flag("--mdoc", wanted.mdoc, "the options, or with --reasons the reasons, as mdoc");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    tools::put(tools::help(app));
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string unknown = tools::unknown_option(app, argc, argv);
    fmt::print(stderr, "slimpi-info: {} (slimpi-info --help lists the options)\n",
               unknown.empty() ? tools::message(error) : unknown);
    return kBadUse;
  }
  if (wanted.reasons)
    return tools::put(wanted.mdoc ? info::reasons_mdoc() : info::reasons_list()), 0;
  if (wanted.list) return tools::put(info::options_list()), 0;
  if (wanted.mdoc) return tools::put(info::options_mdoc()), 0;
  if (wanted.bug) return tell_for_bug();
  if (app.count("--attach") != 0) return tell_of_process(wanted.pid, wanted.json);
  if (app.count("--svg") != 0) return draw(wanted.svg);
  if (app.count("--trace") != 0) return sum_up_traces(wanted.traces);
  if (wanted.documented) wanted.options = true;
  if (!wanted.version && !wanted.options && !wanted.topology)
    wanted.version = wanted.options = true;
  return tell(wanted);
}

}  // namespace

int main(int argc, char** argv) {
  return slimpi::tools::finish_output("slimpi-info", run(argc, argv));
}
