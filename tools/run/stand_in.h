// SPDX-License-Identifier: BSD-3-Clause
// Stand-ins: libraries with the names of MPI's libraries. Some programs load MPI by dlopen, and
// look its functions up by the handle with dlsym, or load MPI with RTLD_DEEPBIND. They never get a
// function of a preloaded library. A stand-in needs libslimpi.so first and the real MPI second. A
// program that finds the stand-in by LD_LIBRARY_PATH thus gets the functions of both, in this
// order.
#pragma once
#include <string>

namespace slimpi::tools {

struct StandIn {
  std::string directory;  // has the libraries; for LD_LIBRARY_PATH
  std::string error;      // "" or one line
};

// Makes a stand-in for each MPI that the dynamic linker finds by its name.
StandIn make_stand_in(const std::string& library);

}  // namespace slimpi::tools
