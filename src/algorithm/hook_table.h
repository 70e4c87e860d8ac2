// SPDX-License-Identifier: BSD-3-Clause
// The table of functions that a hook's shared object exports: slimpi_hook_t of slimpi.h.
#pragma once
#include <string>

#include "algorithm/hook_file.h"
#include "base/status.h"
#include "slimpi.h"

namespace slimpi::algorithm {

// Loads the file, finds the table in it, and checks it. The file stays loaded until the process
// ends, and so does the table. Calls nothing of the hook. Not collective.
Status find_hook_table(const HookFile& file, const slimpi_hook_t** table);

// Fails with "SLIMPI_ALGORITHM=hook:PATH cannot be used: " and the reason.
Status refuse_hook(const HookFile& file, const std::string& why);

}  // namespace slimpi::algorithm
