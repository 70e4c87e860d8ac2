// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi.h"

namespace slimpi::mpi {

// MPICH's ABI, in which handles are ints.
constexpr Abi kMpich = {
    .name = "MPICH",
    .handle_bits = 0xffffffff,
    .in_place = {~Word(0)},
#define SLIMPI_HANDLE(type, name, mpich, ...) .name = type(mpich),
#define SLIMPI_NUMBER(name, mpich, ...) .name = mpich,
#include "mpi/constants.def"
    .predefined = {{0x40000000, 0x80000000}, {0, 0}},
    .status_ignore = {1},
    .fortran_calls_pmpi = false,
    .create_group_is_seen = false,
    .status = {.source = 2, .tag = 3, .error = 4, .bytes = 20},
};

// The standard ABI of MPI 5, in which handles are pointers; predefined handles are small numbers.
constexpr Abi kStandard = {
    .name = "the MPI 5 ABI",
    .handle_bits = ~Word(0),
    .in_place = {1},
#define SLIMPI_HANDLE(type, name, mpich, standard, open_mpi) .name = type(standard),
#define SLIMPI_NUMBER(name, mpich, standard, open_mpi) .name = standard,
#include "mpi/constants.def"
    .predefined = {{0x200, 0x400}, {0, 0}},
    .status_ignore = {0},
    .fortran_calls_pmpi = false,
    .create_group_is_seen = false,
    .status = {.source = 0, .tag = 1, .error = 2, .bytes = 32},
};

Abi open_mpi(const void* (*symbol)(const char* name)) {
  const auto at = [symbol](const char* name) {
    return name == nullptr ? Word(0) : Word(symbol(name));
  };
  return {
      .name = "Open MPI",
      .handle_bits = ~Word(0),
      .in_place = {1},
#define SLIMPI_HANDLE(type, name, mpich, standard, open_mpi) .name = type(at(open_mpi)),
#define SLIMPI_NUMBER(name, mpich, standard, open_mpi) .name = open_mpi,
#include "mpi/constants.def"
      .predefined = {},
      .status_ignore = {0},
      .fortran_calls_pmpi = true,
      .create_group_is_seen = true,
      .status = {.source = 0, .tag = 1, .error = 2, .bytes = 24},
  };
}

constinit Abi abi = kMpich;

}  // namespace slimpi::mpi
