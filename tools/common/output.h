// SPDX-License-Identifier: BSD-3-Clause
// Standard output of the tools. If a write fails, the program ends with a line on standard error
// and status 1; it does not throw, and does not ignore the failure.
#pragma once
#include <string_view>

namespace slimpi::tools {

// Writes `text` to standard output. A failure is kept until finish_output.
void put(std::string_view text);

// Returns the exit status of `program`: `status`; or 1, after a line on standard error, if standard
// output could not be written. Call it last.
int finish_output(const char* program, int status);

}  // namespace slimpi::tools
