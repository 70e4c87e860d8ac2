// SPDX-License-Identifier: BSD-3-Clause
// Stand-ins are libraries with the names of MPI's libraries, for programs that load MPI with
// RTLD_DEEPBIND, or load it by dlopen and look its functions up in the handle. These programs never
// get a function from a preloaded library. A stand-in needs libslimpi.so first and the real MPI
// second, so that a program that finds it by LD_LIBRARY_PATH gets the functions of both, slimpi's
// first.
#pragma once
#include <string>

namespace slimpi::tools {

struct StandIn {
  std::string directory;  // the directory that has them, for LD_LIBRARY_PATH
  std::string error;      // "" or one line
};

// Makes a stand-in for each MPI that the dynamic linker finds by name. `library` is the path of
// libslimpi.so.
StandIn make_stand_in(const std::string& library);

}  // namespace slimpi::tools
