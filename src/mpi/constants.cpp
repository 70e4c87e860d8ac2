// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/constants.h"

#include "mpi/abi.h"

namespace slimpi::mpi {

std::optional<std::uintptr_t> constant(std::string_view name) {
  find_abi();
  const struct {
    std::string_view name;
    Word value;
  } rows[] = {
      {"MPI_COMM_WORLD", Word(abi.comm_world)},
      {"MPI_FLOAT", Word(abi.type_float)},
      {"MPI_DOUBLE", Word(abi.type_double)},
      {"MPI_INT", Word(abi.type_int)},
      {"MPI_BYTE", Word(abi.type_byte)},
      {"MPI_SUM", Word(abi.op_sum)},
      {"MPI_MIN", Word(abi.op_min)},
      {"MPI_IN_PLACE", abi.in_place.word},
      {"MPI_ERRORS_RETURN", Word(abi.errors_return)},
      {"MPI_THREAD_MULTIPLE", Word(abi.thread_multiple)},
  };
  for (const auto& row : rows)
    if (row.name == name) return row.value;
  return std::nullopt;
}

}  // namespace slimpi::mpi
