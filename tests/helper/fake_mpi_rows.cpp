// SPDX-License-Identifier: BSD-3-Clause
// Every function of the table of MPI functions, as one that fails. Those that a test needs are in
// fake_mpi.cpp and take precedence. This file must not see MPI's own declarations.
#define SLIMPI_MPI(name, ...)                                                 \
  extern "C" __attribute__((weak, visibility("default"))) int PMPI_##name();  \
  extern "C" __attribute__((weak, visibility("default"))) int PMPI_##name() { \
    return 15;                                                                \
  }
#include "mpi/functions.def"
