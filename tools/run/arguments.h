// SPDX-License-Identifier: BSD-3-Clause
// The command line of slimpi-run.
#pragma once
#include <map>
#include <string>

namespace slimpi::tools {

struct Arguments {
  bool help = false, version = false, dry_run = false;
  bool compare = false;    // verify every call and print a report at the end
  bool stand_in = false;   // see tools/run/stand_in.h
  bool torch = false;      // DistributedDataParallel models of a Python program get slimpi's hook
  std::string torch_sums;  // which sums are compressed with `torch`; "": not given
  std::string torch_weights;  // bits of the weights that `torch` gathers; "": not given
  std::map<std::string, std::string> variables;  // SLIMPI_ names and the values given for them
  int program = 0;                               // index of the program in argv; argc if missing
  std::string error;                             // "" or one line
};

// Parses the command line. Its options end before the first word that is not an option, or at "--".
Arguments parse_arguments(int argc, const char* const* argv);

// Returns the text of --help.
std::string help_text();

}  // namespace slimpi::tools
