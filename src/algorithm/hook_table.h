// SPDX-License-Identifier: BSD-3-Clause
// The shared object of SLIMPI_ALGORITHM=hook:PATH, and the table of functions that it exports:
// slimpi_hook_t of slimpi.h.
#pragma once
#include <string>

#include "base/status.h"
#include "slimpi.h"

namespace slimpi::algorithm {

// The only string of this path; it stays until the process ends. Two plans have the same hook
// exactly if they have its address, so they are copied and compared without their text. Any thread.
const std::string& hook_file(const std::string& path);

// Loads the file, finds the table in it, and checks it. The file stays loaded until the process
// ends, and so does the table. Calls nothing of the hook. Not collective.
Status find_hook_table(const std::string& file, const slimpi_hook_t** table);

// Fails with "SLIMPI_ALGORITHM=hook:PATH cannot be used: " and the reason.
Status refuse_hook(const std::string& file, const std::string& why);

}  // namespace slimpi::algorithm
