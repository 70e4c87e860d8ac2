// SPDX-License-Identifier: BSD-3-Clause
// MPI's constants by name, for callers that have no mpi.h: their values differ among MPIs.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace slimpi::mpi {

// "MPI_COMM_WORLD" as a word that MPI's functions take as an argument. Empty where the name is none
// of those that slimpi knows. The process's MPI must be known.
std::optional<std::uintptr_t> constant(std::string_view name);

}  // namespace slimpi::mpi
