// SPDX-License-Identifier: BSD-3-Clause
// Finds the persistent sum of a tensor for saved_state.cpp, which saves and restores the sum's
// state.
#pragma once
#include <string>

#include "comm/communicator.h"

namespace slimpi::call {

// Returns the private communicator of the persistent sum of the named tensor, or null if there is
// none.
comm::Communicator* find_persistent(const comm::Communicator& communicator,
                                    const std::string& name);

}  // namespace slimpi::call
