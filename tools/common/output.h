// SPDX-License-Identifier: BSD-3-Clause
// Standard output of the tools. What cannot be written there ends the program with one line and
// status 1, not with an exception and not in silence.
#pragma once
#include <string_view>

namespace slimpi::tools {

// Writes `text` to standard output. A failure is kept until finish_output.
void put(std::string_view text);

// The exit status of `program`: `status`, or 1 after one line on standard error where standard
// output could not be written. To be called last.
int finish_output(const char* program, int status);

}  // namespace slimpi::tools
