// SPDX-License-Identifier: BSD-3-Clause
// Finds the persistent sums of a tensor, whose states saved_state.cpp reads and replaces.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace slimpi::call {

// Returns the private communicators of the persistent sums of the named tensor.
std::vector<std::shared_ptr<comm::Communicator>> find_persistent(
    const comm::Communicator& communicator, const std::string& name);

}  // namespace slimpi::call
