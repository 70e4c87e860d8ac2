// SPDX-License-Identifier: BSD-3-Clause
// Libraries that stand in for MPI's. A program that looks functions up by the handle of an MPI that
// it loaded (dlopen, dlsym), or loads it with RTLD_DEEPBIND, never asks a preloaded library. A
// library of MPI's name that LD_LIBRARY_PATH leads to and that needs libslimpi.so and then the real
// MPI gives both to the program, in this order.
#pragma once
#include <string>

namespace slimpi::tools {

struct StandIn {
  std::string directory;  // has the libraries; for LD_LIBRARY_PATH
  std::string error;      // "" or one line
};

// Makes them for each MPI that the dynamic linker finds by its name.
StandIn make_stand_in(const std::string& library);

}  // namespace slimpi::tools
