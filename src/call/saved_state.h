// SPDX-License-Identifier: BSD-3-Clause
// Saves and restores the states of a named tensor (the residual or low-rank factors) as bytes, for
// checkpoints of the program.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpi/abi.h"

namespace slimpi::call {

// Returns the states of a named tensor as bytes, or nothing if the communicator has no such state.
// Waits for copies from device memory.
std::optional<std::vector<std::byte>> save_state(mpi::Comm comm, const std::string& name);

// Sets the states of a named tensor from bytes, on this rank only. Returns false unless
// save_state() made the bytes on the same rank of a communicator of the same size.
bool restore_state(mpi::Comm comm, const std::string& name, std::span<const std::byte> bytes);

// Drops the states of a named tensor on this rank, so that the next sum of that name begins without
// a state. Returns false only if slimpi does not know the communicator.
bool drop_state(mpi::Comm comm, const std::string& name);

}  // namespace slimpi::call
