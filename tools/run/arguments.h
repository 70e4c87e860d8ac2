// SPDX-License-Identifier: BSD-3-Clause
// The command line of slimpi-run.
#pragma once
#include <map>
#include <string>

namespace slimpi::tools {

struct Arguments {
  bool help = false, version = false, dry_run = false;
  bool compare = false;    // every call is verified; a report at the end
  bool stand_in = false;   // a library of MPI's name leads to slimpi, too: tools/run/stand_in.h
  bool torch = false;      // DistributedDataParallel models of a Python program get slimpi's hook
  std::string torch_sums;  // which sums are compressed then; "": none was given
  std::map<std::string, std::string> variables;  // SLIMPI_ names and the values given for them
  int program = 0;                               // index of the program in argv; argc if missing
  std::string error;                             // "" or one line
};

// Options end at the first word that is none, or behind "--".
Arguments parse_arguments(int argc, const char* const* argv);

// "min_size" as people write it on a command line: "--min-size".
std::string dashed(const std::string& name);

// What --help prints.
std::string help_text();

}  // namespace slimpi::tools
