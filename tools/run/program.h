// SPDX-License-Identifier: BSD-3-Clause
// The program that slimpi-run starts: where it is, and whether a preloaded library can reach it.
#pragma once
#include <string>

namespace slimpi::tools {

struct Program {
  std::string path;  // the file to execute; "" if there is none
  int status = 0;    // then the exit status: 127 not found, 126 not executable
  std::string why;   // the reason in words
};

// Looks for the program `name` as a shell does. A name with a slash is a path. Another name is
// looked for in the directories of `path`, the value of PATH.
Program find_program(const std::string& name, const std::string& path);

// Returns why the dynamic linker will not load `library` into the program at `path`, in words that
// follow the program's name, such as "is statically linked". Returns "" if the linker will load it,
// or if the program is a script. *starts becomes false if the program would not start with
// LD_PRELOAD set.
std::string unreachable(const std::string& path, const std::string& library, bool* starts);

}  // namespace slimpi::tools
