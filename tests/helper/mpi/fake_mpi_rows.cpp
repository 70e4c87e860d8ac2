// SPDX-License-Identifier: BSD-3-Clause
// Defines every function of the table of MPI functions so that it fails. The functions that a test
// needs are in fake_mpi.cpp and take precedence. This file must not include MPI's own declarations.
#define SLIMPI_MPI(name, ...)                                                 \
  extern "C" __attribute__((weak, visibility("default"))) int PMPI_##name();  \
  extern "C" __attribute__((weak, visibility("default"))) int PMPI_##name() { \
    return 15;                                                                \
  }
#include "mpi/functions.def"
