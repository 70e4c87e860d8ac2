// SPDX-License-Identifier: BSD-3-Clause
// Finds the program that slimpi-run starts, and whether a preloaded library will be loaded into it.
#pragma once
#include <string>

namespace slimpi::tools {

struct Program {
  std::string path;  // the file to execute; "" if there is none
  int status = 0;    // exit status if path is "": 127 for not found, 126 for not executable
  std::string why;   // why path is "", in words
};

// Finds the program `name` as a shell does: a name with a slash is a path, and any other name is
// looked for in the directories of `path`, the value of PATH.
Program find_program(const std::string& name, const std::string& path);

// Returns why the dynamic linker will not load `library` into the program at `path`, in words that
// follow the program's name, such as "is statically linked". Returns "" if the linker will load it,
// or if the program is a script. Sets *starts to false if the program cannot even start with
// LD_PRELOAD set, and otherwise to true.
std::string unreachable(const std::string& path, const std::string& library, bool* starts);

}  // namespace slimpi::tools
