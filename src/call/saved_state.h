// SPDX-License-Identifier: BSD-3-Clause
// The state of a named tensor as bytes, for checkpoints: what slimpi_get_state writes and
// slimpi_set_state reads. Of error feedback and of the low-rank algorithms only: the replicas of
// the decentralized ones belong to those of peers, and what a hook keeps is its own.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace slimpi::call {

// Whose states hold that of a name: of a persistent sum, or of the program's communicator. Null
// where slimpi knows no such communicator.
comm::Communicator* find_state_owner(mpi::Comm comm, const std::string& name);

// Empty where the communicator has no such state. Waits for device memory.
std::optional<std::vector<std::byte>> save_state(comm::Communicator& communicator,
                                                 const std::string& name);

// Local. False where the bytes are not what this rank of a communicator of this size saved.
bool restore_state(comm::Communicator& communicator, const std::string& name,
                   std::span<const std::byte> bytes);

// Local. The next sum of that name begins without a state. True, also where there is none.
bool drop_state(comm::Communicator& communicator, const std::string& name);

}  // namespace slimpi::call
