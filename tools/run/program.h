// SPDX-License-Identifier: BSD-3-Clause
// The program that slimpi-run starts: where it is, and whether a preloaded library can reach it.
#pragma once
#include <string>

namespace slimpi::tools {

struct Program {
  std::string path;  // what to execute; "" if it cannot be
  int status = 0;    // the exit status that says why not: 127 not found, 126 not executable
  std::string why;   // the same in words
};

// Looks for `name` as a shell does: as it is if it has a slash, else in the directories of `path`,
// the value of PATH.
Program find_program(const std::string& name, const std::string& path);

// Why the dynamic linker will not load `library` into the program at `path`, in words that follow
// its name: "is statically linked"; "" if it will, or if the program is a script. *starts: false
// where the program would not start with LD_PRELOAD set.
std::string unreachable(const std::string& path, const std::string& library, bool* starts);

}  // namespace slimpi::tools
